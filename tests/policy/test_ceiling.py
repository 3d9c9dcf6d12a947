"""`max_effect`: nothing above it is ever granted, and it never grants."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.policy.catalogues import (
    CAPABILITIES,
    EFFECT_OF,
    EVENTS,
    PROFILES,
    World,
    compile_world,
    worlds,
)
from tests.policy.texts import compiled, event, told

from remit.config.migrate.migrate import migrate
from remit.model.agent import AgentSpec
from remit.model.event import EFFECTS, Effect
from remit.policy.catalogue import Catalogue
from remit.policy.compile import resolve
from remit.policy.decide import decide
from remit.policy.delegate import resolve_agent
from remit.policy.explain import explain
from remit.policy.graph.graph import picture
from remit.policy.plan import plan

EXAMPLES = settings(max_examples=200)
CEILINGS = st.dictionaries(st.sampled_from(range(len(PROFILES))), st.sampled_from(EFFECTS))
CAPS = """
capabilities:
  all: {description: x, event_patterns: ["s:*"], claude_tools: [Bash]}
  gate: {description: y, event_patterns: [s:wipe, t:get], security_review_required: true}
"""
UNITS = [
    event("s:get", effect="read"),
    event("s:set", effect="write"),
    event("s:named", effect="read", wildcard=False),
    event("s:wipe", effect="destructive"),
    event("s:odd"),
    event("t:get", effect="read"),
]


def under(world: World, ceilings: Mapping[int, Effect]) -> World:
    roles = [replace(role, max_effect=ceilings.get(at)) for at, role in enumerate(world.roles)]
    return replace(world, roles=tuple(roles))


def catalogue(*profiles: str) -> Catalogue:
    return compiled(CAPS, *profiles, events=UNITS)


@EXAMPLES
@given(worlds(), CEILINGS)
def test_nothing_above_the_ceiling_is_granted_and_a_ceiling_grants_nothing(
    world: World, ceilings: dict[int, Effect]
) -> None:
    free, capped = compile_world(world), compile_world(under(world, ceilings))
    for name, grant in capped.grants.items():
        assert grant.events <= free.grants[name].events
        assert grant.claude_tools <= free.grants[name].claude_tools
        assert grant.pinned <= grant.exposed <= grant.events
        assert capped.universe.bits_of(grant.events) == grant.bits
        if grant.max_effect is None:
            assert grant.events == free.grants[name].events
            continue
        highest = EFFECTS.index(grant.max_effect)
        for held in grant.events:
            effect = EFFECT_OF[held]
            assert effect is not None
            assert EFFECTS.index(effect) <= highest
        assert not grant.claude_tools


@EXAMPLES
@given(worlds(), CEILINGS)
def test_a_profile_is_under_every_ceiling_that_it_builds_on(
    world: World, ceilings: dict[int, Effect]
) -> None:
    grants = compile_world(under(world, ceilings)).grants
    for at, role in enumerate(world.roles):
        built_on = [grants[name].max_effect for name in (*role.extends, *role.mixins)]
        said = [effect for effect in (ceilings.get(at), *built_on) if effect is not None]
        assert grants[role.name].max_effect == min(said, key=EFFECTS.index, default=None)


@EXAMPLES
@given(worlds(), CEILINGS)
def test_the_explanation_agrees_with_the_mask_and_names_the_line(
    world: World, ceilings: dict[int, Effect]
) -> None:
    found = compile_world(under(world, ceilings))
    free = compile_world(world)
    for name, grant in found.grants.items():
        for one in EVENTS:
            answer = explain(found, name, one)
            assert (answer.allowed, answer.reason) == (one in grant.events, decide(grant, one))
            assert answer.allowed == bool(answer.granted_by and not answer.denied_by)
            if one in free.grants[name].events - grant.events:
                assert f"max_effect: {grant.max_effect}" in {r.pattern for r in answer.denied_by}


@EXAMPLES
@given(worlds(), st.sampled_from(PROFILES), st.sampled_from(EFFECTS), CEILINGS)
def test_the_option_is_the_same_computation_as_the_key(
    world: World, name: str, effect: Effect, ceilings: dict[int, Effect]
) -> None:
    asked = resolve(compile_world(under(world, ceilings)), name, max_effect=effect)
    at = PROFILES.index(name)
    lower = min([effect, ceilings.get(at, effect)], key=EFFECTS.index)
    said = compile_world(under(world, ceilings | {at: lower})).grants[name]
    assert (asked.bits, asked.exposed, asked.claude_tools) == (
        said.bits,
        said.exposed,
        said.claude_tools,
    )
    assert (asked.max_effect, asked.denied_events) == (said.max_effect, said.denied_events)


@EXAMPLES
@given(
    worlds(),
    CEILINGS,
    st.sampled_from(PROFILES),
    st.lists(st.sampled_from([*EVENTS, "a:*", "c:*", "Bash"]), max_size=3),
    st.lists(st.sampled_from(CAPABILITIES), max_size=3),
)
def test_nothing_that_an_agent_is_given_beside_its_profile_lies_above(
    world: World,
    ceilings: dict[int, Effect],
    name: str,
    tools: list[str],
    capabilities: list[str],
) -> None:
    found = compile_world(under(world, ceilings))
    spec = AgentSpec(
        profile=name, additional_tools=tuple(tools), capabilities=dict.fromkeys(capabilities, True)
    )
    grant, highest = resolve_agent(found, spec, lives=True), found.grants[name].max_effect
    assert grant.max_effect == highest
    if highest is not None:
        assert grant.bits & ~found.universe.at_most[highest] == 0
        assert not grant.claude_tools


@EXAMPLES
@given(worlds(), CEILINGS, CEILINGS)
def test_a_plan_tells_of_a_ceiling_that_was_raised_even_if_nobody_gains_by_it_yet(
    world: World, old: dict[int, Effect], new: dict[int, Effect]
) -> None:
    before, after = (compile_world(under(world, one)).grants for one in (old, new))
    found = plan(before, after)
    for name in PROFILES:
        pair = (before[name].max_effect, after[name].max_effect)
        change = found.changes.get(name)
        assert (change is not None and change.max_effect_changed == pair) == (pair[0] != pair[1])
        raised = pair[1] is None or (
            pair[0] is not None and EFFECTS.index(pair[1]) > EFFECTS.index(pair[0])
        )
        if change is not None and pair[0] != pair[1] and raised:
            assert change.widens


@pytest.mark.parametrize(
    ("asked", "reason", "pattern", "causes"),
    [
        pytest.param("s:get", "granted", [], [], id="no-more-than-it"),
        pytest.param("s:set", "explicit_deny", ["max_effect: read"], ["max_effect"], id="more"),
        pytest.param("s:odd", "explicit_deny", ["max_effect: read"], ["max_effect"], id="unknown"),
        pytest.param(
            "s:named", "explicit_deny", ["max_effect: read"], ["wildcard"], id="must-be-named"
        ),
        pytest.param("t:get", "no_grant", [], [], id="not-given-at-all"),
    ],
)
def test_why_names_the_line_and_the_effect(
    asked: str, reason: str, pattern: list[str], causes: list[str]
) -> None:
    found = catalogue("name: p\ncapabilities: [all]\nmax_effect: read\n")
    answer = explain(found, "p", asked)
    assert (answer.reason, [rule.pattern for rule in answer.denied_by]) == (reason, pattern)
    assert [cause.code for cause in answer.causes] == causes
    assert {str(rule.place) for rule in answer.denied_by} <= {"p0.yaml:3:13"}


def test_the_line_may_stand_in_a_profile_that_this_one_builds_on() -> None:
    found = catalogue(
        "{name: quiet, max_effect: read}",
        "{name: p, capabilities: [all], extends: quiet, max_effect: destructive}",
    )
    (rule,) = explain(found, "p", "s:set").denied_by
    assert (str(rule.place), rule.pattern) == ("p0.yaml:1:27", "max_effect: read")


def test_it_may_depend_on_a_variable() -> None:
    found = catalogue(
        "{name: p, capabilities: [all], variables: {shift: {default: day}}, components: "
        "[{name: max_effect, inline: read, when: {shift: night}}]}"
    )
    assert "s:set" in resolve(found, "p").events
    assert resolve(found, "p", variables={"shift": "night"}).events == {"s:get"}


def test_a_review_that_would_bring_nothing_is_not_waited_for() -> None:
    found = catalogue("{name: p, capabilities: [gate], max_effect: read}")
    assert decide(found.grants["p"], "s:wipe") == "explicit_deny"
    assert decide(found.grants["p"], "t:get") == "review_pending"


def test_what_a_list_names_above_it_is_a_warning_at_its_place() -> None:
    found = catalogue("{name: p, allowed_tools: [s:get, s:wipe, 's:*', Bash], max_effect: read}")
    above = [problem for problem in found.warnings if problem.code == "above_max_effect"]
    assert told(above) == ["p0.yaml:1:34 above_max_effect", "p0.yaml:1:49 above_max_effect"]


def test_the_picture_says_it() -> None:
    card = picture(catalogue("{name: p, capabilities: [all], max_effect: read}"), "p").cards[0]
    assert "max effect: read" in card.marks


def test_a_migration_counts_what_will_exist_as_well() -> None:
    """Under the ceiling nothing of `s:later` is left now; its handler may come tomorrow."""
    found = catalogue("{name: p, allowed_tools: ['s:get', 's:later'], max_effect: read}")
    moved = migrate(found, found.compositions["p"])
    assert moved.additional_tools == ("s:get", "s:later")
