"""What an agent may be given: a profile with its own changes, and never more than its parent."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.catalogues import (
    CAPABILITIES,
    EVENTS,
    OLD_NAMES,
    PROFILES,
    TOOLS,
    WILDCARDS,
    Role,
    World,
    compile_world,
    worlds,
)
from tests.policy.texts import compiled

from remit.errors import InvalidDataError, NotFoundError
from remit.model.grant import Grant
from remit.model.limits import Limits, is_wider
from remit.model.principal import AgentSpec
from remit.policy.catalogue import Catalogue
from remit.policy.decide import confine
from remit.policy.delegate import (
    Excess,
    check_denials,
    excess,
    inherit,
    resolve_agent,
    unheld,
)

NAMED = (*EVENTS, *OLD_NAMES)
LIMITS = st.sampled_from(
    [Limits(), Limits(max_depth=0), Limits(max_depth=1, max_children=2), Limits(max_queue=1)]
)


def entries(*more: str) -> st.SearchStrategy[tuple[str, ...]]:
    found = st.sampled_from((*NAMED, *WILDCARDS, *TOOLS, *more))
    return st.lists(found, max_size=3, unique=True).map(tuple)


SPECS = st.builds(
    AgentSpec,
    profile=st.sampled_from(("", *PROFILES)),
    capabilities=st.dictionaries(st.sampled_from(CAPABILITIES), st.booleans(), max_size=3),
    additional_tools=entries(),
    disallowed_tools=entries("*"),
    limits=LIMITS,
)
HEIRS = st.builds(
    lambda denied, limits: AgentSpec(inherit=True, disallowed_tools=denied, limits=limits),
    entries("*"),
    LIMITS,
)


def holds_no_more(child: Grant, parent: Grant) -> bool:
    """Tell whether a child is under its parent in every way in which a grant can be larger."""
    limits = child.limits.__struct_fields__
    return (
        child.events <= parent.events
        and child.bits & ~parent.bits == 0
        and child.exposed <= child.events
        and child.claude_tools <= parent.claude_tools
        and parent.approval_required & child.events <= child.approval_required
        and not any(
            is_wider(getattr(parent.limits, name), getattr(child.limits, name)) for name in limits
        )
    )


def shape(grant: Grant) -> dict[str, Any]:
    """All that matters about a grant but its name."""
    names = ("events", "bits", "exposed", "exposure", "pinned", "claude_tools", "limits")
    more = ("capabilities", "denied_events", "denied_tools", "approval_required", "pending_review")
    return {name: getattr(grant, name) for name in (*names, *more)}


# ---- an agent by itself ----


@given(worlds(), SPECS)
def test_an_agent_holds_what_a_profile_with_the_same_changes_would(
    world: World, spec: AgentSpec
) -> None:
    role = Role(
        name="agent",
        extends=(spec.profile,) if spec.profile else (),
        mixins=(),
        flags=tuple(spec.capabilities.items()),
        allowed=spec.additional_tools,
        denied=spec.disallowed_tools,
    )
    written = compile_world(World(world.units, (*world.roles, role), world.holders))
    expected = shape(written.grants["agent"])
    expected["limits"] = expected["limits"].smallest(spec.limits)
    assert shape(resolve_agent(compile_world(world), spec)) == expected


@given(worlds(), st.sampled_from(PROFILES))
def test_an_agent_without_changes_holds_its_profile(world: World, profile: str) -> None:
    catalogue = compile_world(world, approved=CAPABILITIES)
    assert resolve_agent(catalogue, AgentSpec(profile=profile)) is catalogue.grants[profile]


@given(worlds(), st.sampled_from(PROFILES), LIMITS)
def test_reviews_that_a_profile_passed_count_for_its_agents_whatever_they_change(
    world: World, profile: str, limits: Limits
) -> None:
    catalogue = compile_world(world, approved=CAPABILITIES)
    agent = resolve_agent(catalogue, AgentSpec(profile=profile, limits=limits))
    assert agent.events == catalogue.grants[profile].events
    assert agent.pending_review == catalogue.grants[profile].pending_review


@given(worlds(), SPECS)
def test_what_an_agent_or_its_profile_is_denied_nothing_adds(world: World, spec: AgentSpec) -> None:
    catalogue = compile_world(world, approved=CAPABILITIES)
    agent = resolve_agent(catalogue, spec)
    assert agent.events.isdisjoint(agent.denied_events)
    assert agent.claude_tools.isdisjoint(agent.denied_tools)
    if spec.profile:
        assert agent.events.isdisjoint(catalogue.grants[spec.profile].denied_events)


# ---- under a parent ----


@given(worlds(), SPECS, st.lists(SPECS, min_size=1, max_size=3))
def test_no_child_exceeds_any_of_its_ancestors(
    world: World, spec: AgentSpec, above: list[AgentSpec]
) -> None:
    catalogue = compile_world(world)
    line = [resolve_agent(catalogue, above[0])]
    for one in (*above[1:], spec):
        line.append(confine(catalogue, resolve_agent(catalogue, one), line[-1]))
    assert all(holds_no_more(line[-1], ancestor) for ancestor in line)


@given(worlds(), SPECS, SPECS)
def test_the_excess_is_exactly_what_narrowing_cuts(
    world: World, child: AgentSpec, parent: AgentSpec
) -> None:
    catalogue = compile_world(world)
    own, ceiling = resolve_agent(catalogue, child), resolve_agent(catalogue, parent)
    kept, cut = confine(catalogue, own, ceiling), excess(own, ceiling)
    assert (*sorted(own.events - kept.events),) == cut.events
    assert (*sorted(own.claude_tools - kept.claude_tools),) == cut.claude_tools
    assert cut.is_empty == (
        own.events <= ceiling.events and own.claude_tools <= ceiling.claude_tools
    )
    assert excess(kept, ceiling).is_empty


@pytest.mark.parametrize(
    ("found", "is_empty"),
    [
        (Excess((), ()), True),
        (Excess(("a:get",), ()), False),
        (Excess((), ("Bash",)), False),
        (Excess(("a:get",), ("Bash",)), False),
    ],
)
def test_an_excess_of_events_or_of_tools_alone_is_one(found: Excess, *, is_empty: bool) -> None:
    assert found.is_empty is is_empty


# ---- heirs ----


@given(worlds(), SPECS, HEIRS)
def test_an_heir_holds_all_of_its_parent_but_what_it_is_denied(
    world: World, parent: AgentSpec, heir: AgentSpec
) -> None:
    catalogue = compile_world(world)
    above = resolve_agent(catalogue, parent)
    child = inherit(catalogue, heir, above)
    denied = resolve_agent(catalogue, AgentSpec(disallowed_tools=heir.disallowed_tools))
    assert child.events == above.events - set(denied.denied_events)
    everything = "*" in heir.disallowed_tools
    kept = set() if everything else above.claude_tools - set(heir.disallowed_tools)
    assert child.claude_tools == kept
    assert child.bits == catalogue.universe.bits_of(child.events)
    assert child.exposed == above.exposed & child.events
    assert (child.exposure, child.pinned) == (above.exposure, above.pinned & child.events)
    assert child.limits == above.limits.smallest(heir.limits)
    assert holds_no_more(child, above)


@given(worlds(), SPECS, HEIRS)
def test_the_denials_of_an_heir_come_on_top_of_its_parents(
    world: World, parent: AgentSpec, heir: AgentSpec
) -> None:
    catalogue = compile_world(world)
    above = resolve_agent(catalogue, parent)
    child = inherit(catalogue, heir, above)
    own = resolve_agent(catalogue, AgentSpec(disallowed_tools=heir.disallowed_tools))
    assert set(child.denied_events) == {*above.denied_events, *own.denied_events}
    assert list(child.denied_events) == sorted(set(child.denied_events))
    assert child.denied_tools == above.denied_tools | own.denied_tools
    assert {*child.denied} == {*above.denied, *own.denied}


@given(worlds(), SPECS)
def test_an_heir_without_changes_holds_exactly_what_its_parent_does(
    world: World, parent: AgentSpec
) -> None:
    catalogue = compile_world(world)
    above = resolve_agent(catalogue, parent)
    assert inherit(catalogue, AgentSpec(inherit=True), above) is above


def test_an_heir_waits_for_approval_where_its_parent_does() -> None:
    catalogue = compiled(
        "capabilities:\n  all: {description: d, event_patterns: ['state:*']}\n",
        "{name: p, capabilities: [all], approval_required: [state:set, state:delete]}",
    )
    heir = AgentSpec(inherit=True, disallowed_tools=("state:delete",))
    assert inherit(catalogue, heir, catalogue.grants["p"]).approval_required == {"state:set"}


def test_a_child_waits_for_approval_where_its_parent_does_whatever_its_profile_says() -> None:
    catalogue = compiled(
        "capabilities:\n  all: {description: d, event_patterns: ['state:*']}\n",
        "{name: p, capabilities: [all], approval_required: [state:set, state:delete]}",
        "{name: free, additional_tools: [state:set, state:get, agent:spawn]}",
    )
    child = confine(catalogue, catalogue.grants["free"], catalogue.grants["p"])
    assert child.events == {"state:set", "state:get"}
    assert child.approval_required == {"state:set"}
    assert holds_no_more(child, catalogue.grants["p"])


# ---- what a giver learns ----


@given(worlds(), SPECS, SPECS)
def test_what_is_named_outright_and_not_held_is_told_by_the_name_that_was_used(
    world: World, child: AgentSpec, parent: AgentSpec
) -> None:
    catalogue = compile_world(world)
    ceiling = resolve_agent(catalogue, parent)
    told = unheld(catalogue, child, ceiling)
    named = [name for name in child.additional_tools if name in NAMED]
    beyond = {name for name in named if OLD_NAMES.get(name, name) not in ceiling.events}
    assert {OLD_NAMES.get(name, name) for name in told.events} == {
        OLD_NAMES.get(name, name) for name in beyond
    }
    assert set(told.events) <= beyond
    assert list(told.events) == sorted(told.events)
    assert told.claude_tools == ()


@given(worlds(), SPECS)
def test_an_event_that_nobody_serves_is_told_like_one_that_is_not_held(
    world: World, parent: AgentSpec
) -> None:
    catalogue = compile_world(world)
    ceiling = resolve_agent(catalogue, parent)
    spec = AgentSpec(additional_tools=("no:such", "no:*", "Bash"))
    assert unheld(catalogue, spec, ceiling).events == ("no:such",)


@given(worlds(), SPECS, entries("*", "no:such", "no:*"))
def test_a_denial_is_refused_exactly_when_it_takes_nothing_that_the_giver_holds(
    world: World, parent: AgentSpec, denied: tuple[str, ...]
) -> None:
    ceiling = resolve_agent(compile_world(world), parent)

    def takes_something(text: str) -> bool:
        held = ceiling.events
        if text in TOOLS:
            return True
        prefix = text.removesuffix("*")
        return any(event.startswith(prefix) if text != prefix else event == text for event in held)

    spec = AgentSpec(disallowed_tools=denied)
    useless = [text for text in denied if not takes_something(text)]
    if not useless:
        check_denials(spec, ceiling)
        return
    with pytest.raises(InvalidDataError) as caught:
        check_denials(spec, ceiling)
    assert caught.value.details == {"path": "$.disallowed_tools"}
    assert repr(useless[0]) in caught.value.message


# ---- what cannot be given ----

TEXT = """
capabilities:
  base: {description: d, event_patterns: [system:health], always_included: true}
  reading: {description: d, event_patterns: [state:get], aliases: [looking]}
"""


def catalogue() -> Catalogue:
    return compiled(
        TEXT,
        "{name: reader, capabilities: [reading]}",
        "{name: team, variables: {verb: {default: get, allowed_values: [get, set]}}, "
        "additional_tools: ['state:{{verb}}']}",
    )


def test_an_agent_without_a_profile_holds_what_is_always_included_and_what_it_is_given() -> None:
    assert resolve_agent(catalogue(), AgentSpec()).events == {"system:health"}
    spec = AgentSpec(capabilities={"looking": True})
    assert resolve_agent(catalogue(), spec).events == {"system:health", "state:get"}


def test_variables_choose_among_what_the_profile_allows() -> None:
    spec = AgentSpec(profile="team", variables={"verb": "set"})
    assert resolve_agent(catalogue(), spec).events == {"system:health", "state:set"}
    with pytest.raises(InvalidDataError):
        resolve_agent(catalogue(), AgentSpec(profile="team", variables={"verb": "delete"}))


def test_an_unknown_profile_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(NotFoundError) as caught:
        resolve_agent(catalogue(), AgentSpec(profile="raeder"))
    assert "'reader'" in caught.value.hint


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (AgentSpec(capabilities={"raeding": True}), "$.capabilities.raeding"),
        (AgentSpec(profile="reader", capabilities={"x": False}), "$.capabilities.x"),
        (AgentSpec(disallowed_tools=("no:such",)), "$.disallowed_tools"),
        (AgentSpec(additional_tools=("*",)), "$.additional_tools"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(spec: AgentSpec, path: str) -> None:
    with pytest.raises(InvalidDataError) as caught:
        resolve_agent(catalogue(), spec)
    assert caught.value.details == {"path": path}
