"""From a profile to a grant: tool lists, model tools and the highest effect."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.policy.catalogues import CAPABILITIES as ALL_CAPABILITIES
from tests.policy.catalogues import (
    EFFECT_OF,
    PROFILES,
    World,
    compile_world,
    worlds,
)
from tests.policy.catalogues import EVENTS as ALL_EVENTS
from tests.policy.texts import CAPABILITIES, compiled, event, granted, own, refused, told

from remit.config.migrate.migrate import migrate
from remit.model.grant import Grant
from remit.model.limits import EFFECTS, Effect
from remit.model.principal import AgentSpec
from remit.policy.catalogue import Catalogue
from remit.policy.compile import resolve
from remit.policy.decide import decide
from remit.policy.delegate import resolve_agent
from remit.policy.explain import explain
from remit.policy.graph.graph import picture
from remit.policy.plan import plan

DENY = "{name: deny, disallowed_tools: [state:delete]}"


def test_additional_tools_add_single_events() -> None:
    assert own(granted("{name: p, additional_tools: [agent:spawn]}")) == {"agent:spawn"}
    assert own(granted("{name: p, additional_tools: agent:spawn}")) == {"agent:spawn"}


def test_an_explicit_list_keeps_working() -> None:
    text = """
name: p
components:
  - name: ksi_tools
    inline: {allowed_tools: [state:get, state:set, agent:spawn]}
"""
    assert own(granted(text)) == {"state:get", "state:set", "agent:spawn"}


def test_tool_overrides_mean_the_same_as_the_short_form() -> None:
    long = """
name: p
components:
  - name: capabilities
    inline: {state_write: true}
  - name: tool_overrides
    inline: {additional_tools: [agent:spawn], disallowed_tools: [state:delete]}
"""
    short = """
name: p
capabilities: {state_write: true}
additional_tools: [agent:spawn]
disallowed_tools: [state:delete]
"""
    assert granted(long).events == granted(short).events
    assert "state:delete" not in granted(long).events


@pytest.mark.parametrize(
    "grants",
    [
        pytest.param("capabilities: [state_write]", id="a-capability"),
        pytest.param("additional_tools: [state:delete]", id="additional-by-name"),
        pytest.param('additional_tools: ["state:*"]', id="additional-by-pattern"),
        pytest.param("allowed_tools: [state:delete]", id="an-explicit-list"),
        pytest.param('operator: true\nallowed_tools: ["*"]', id="an-operator-profile"),
        pytest.param("extends: parent", id="a-parent"),
        pytest.param("mixins: [parent]", id="a-mixin"),
    ],
)
@pytest.mark.parametrize("denial", ["state:delete", "state:*", "state:d*", "*"])
def test_a_denial_beats_a_grant_however_the_grant_is_made(grants: str, denial: str) -> None:
    parent = "{name: parent, additional_tools: [state:delete]}"
    grant = granted(parent, f'name: p\ndisallowed_tools: ["{denial}"]\n{grants}')
    assert "state:delete" not in grant.events
    assert decide(grant, "state:delete") == "explicit_deny"
    assert "state:delete" in grant.denied_events


@pytest.mark.parametrize("key", ["extends", "mixins"])
@pytest.mark.parametrize(
    "grants", ["capabilities: [state_write]", "additional_tools: [state:delete]"]
)
def test_nothing_that_builds_on_a_denial_gets_the_event_back(key: str, grants: str) -> None:
    grant = granted(DENY, f"name: p\n{key}: [deny]\n{grants}")
    assert "state:delete" not in grant.events


def test_a_denial_holds_after_requires() -> None:
    grant = granted("{name: p, capabilities: [state_write], disallowed_tools: [state:get]}")
    assert own(grant) == {"state:list", "state:set", "state:delete"}


def test_a_denial_can_take_from_the_base() -> None:
    assert granted("{name: p, disallowed_tools: [system:health]}").events == frozenset()


def test_a_denial_by_an_old_name_denies_the_event() -> None:
    events = (event("state:get", aliases=("store:read",)), "state:set")
    for denial in ("store:read", "store:*"):
        profile = f'{{name: p, allowed_tools: [state:get], disallowed_tools: ["{denial}"]}}'
        grant = compiled("capabilities: {}", profile, events=events).grants["p"]
        assert grant.events == frozenset()
        assert decide(grant, "state:get") == "explicit_deny"


def test_a_grant_by_an_old_name_is_told() -> None:
    events = [event("state:get", aliases=("store:read",))]
    profile = "name: p\nallowed_tools: [store:read]"
    grant = compiled("capabilities: {}", profile, events=events).grants["p"]
    assert grant.events == {"state:get"}
    assert told(grant.warnings) == ["p0.yaml:2:17 old_name"]


def test_a_denial_that_denies_nothing_is_refused_with_a_suggestion() -> None:
    problems = refused(CAPABILITIES, "name: p\ndisallowed_tools: [state:get, state:delet]")
    assert told(problems) == ["p0.yaml:2:31 dead_denial"]
    assert problems[0].hint == "did you mean 'state:delete'?"


@pytest.mark.parametrize("denial", ["stat:*", "state:x*", "nothing:here"])
def test_a_dead_pattern_in_a_deny_list_is_an_error(denial: str) -> None:
    problems = refused(CAPABILITIES, f'name: p\ndisallowed_tools: ["{denial}"]')
    assert told(problems) == ["p0.yaml:2:20 dead_denial"]


def test_an_event_whose_handler_is_not_loaded_can_be_denied_when_a_capability_names_it() -> None:
    events = ["system:health", "state:get"]
    for denial in ("state:delete", "state:d*"):
        profile = f'{{name: p, capabilities: [state_write], disallowed_tools: ["{denial}"]}}'
        grant = compiled(CAPABILITIES, profile, events=events).grants["p"]
        assert decide(grant, "state:delete") == "explicit_deny"


def test_a_pattern_of_a_capability_does_not_make_the_same_denial_live() -> None:
    text = 'capabilities: {a: {description: x, event_patterns: ["todo:*"]}}'
    problems = refused(text, 'name: p\ndisallowed_tools: ["todo:*"]')
    assert told(problems) == ["p0.yaml:2:20 dead_denial"]


def test_a_dead_pattern_in_an_allow_list_is_a_warning() -> None:
    grant = granted("name: p\nadditional_tools: [state:gett]")
    assert told(grant.warnings) == ["p0.yaml:2:20 dead_pattern"]
    assert grant.warnings[0].hint == "did you mean 'state:get'?"


def test_a_wildcard_over_events_that_must_be_named_says_so() -> None:
    events = [event("state:wipe", wildcard=False)]
    profile = 'name: p\nadditional_tools: ["state:*"]'
    (warning,) = compiled("capabilities: {}", profile, events=events).grants["p"].warnings
    assert "a wildcard may grant" in warning.message
    assert warning.hint == "name it: state:wipe"


@pytest.mark.parametrize("key", ["allowed_tools", "additional_tools", "disallowed_tools"])
@pytest.mark.parametrize("entry", ["Agent:spawn", "state:", "sta*te:get", "Web*", "a:b:*c"])
def test_an_unreadable_entry_is_refused_at_its_place(key: str, entry: str) -> None:
    problems = refused(CAPABILITIES, f'name: p\n{key}: [state:get, "{entry}"]')
    assert told(problems) == [f"p0.yaml:2:{len(key) + 15} invalid_pattern"]


SAME_WORD = """
capabilities:
  tools: {description: x, claude_tools: [Bash, WebFetch]}
  events: {description: x, event_patterns: [bash:run, tools:list]}
  hidden: {description: x, event_patterns: [agent:spawn], mcp_tools: false}
"""
EVENTS = ["bash:run", "tools:list", "agent:spawn", "bash:bash"]


def grant_of(profile: str, capabilities: str = SAME_WORD) -> Grant:
    return compiled(capabilities, profile, events=EVENTS).grants["p"]


def test_a_capability_gives_its_model_tools() -> None:
    grant = grant_of("{name: p, capabilities: [tools]}")
    assert grant.claude_tools == {"Bash", "WebFetch"}
    assert grant.events == frozenset()


def test_events_never_grant_a_model_tool_of_the_same_word() -> None:
    grant = grant_of('{name: p, capabilities: [events], additional_tools: ["bash:*"]}')
    assert grant.claude_tools == frozenset()
    assert grant.events == {"bash:run", "bash:bash", "tools:list"}


def test_a_model_tool_never_grants_an_event_of_the_same_word() -> None:
    grant = grant_of("{name: p, additional_tools: [bash, Bash]}")
    assert grant.claude_tools == {"bash", "Bash"}
    assert grant.events == frozenset()


def test_a_capability_and_an_event_group_of_one_name_are_two_things() -> None:
    text = "capabilities: {health: {description: x, event_patterns: [bash:run]}}"
    grant = grant_of("{name: p, capabilities: [health]}", text)
    assert grant.claude_tools == frozenset()


def test_denying_a_model_tool_leaves_the_events_and_the_other_way_round() -> None:
    everything = "capabilities: [tools, events]"
    no_tool = grant_of(f"{{name: p, {everything}, disallowed_tools: [Bash]}}")
    assert no_tool.claude_tools == {"WebFetch"}
    assert no_tool.denied_tools == {"Bash"}
    assert "bash:run" in no_tool.events
    no_event = grant_of(f'{{name: p, {everything}, disallowed_tools: ["bash:*"]}}')
    assert no_event.claude_tools == {"Bash", "WebFetch"}
    assert "bash:run" not in no_event.events


def test_a_denied_model_tool_cannot_be_added_again() -> None:
    parent = "{name: a, disallowed_tools: [Bash]}"
    child = "{name: p, extends: a, capabilities: [tools], additional_tools: [Bash]}"
    grant = compiled(SAME_WORD, parent, child, events=EVENTS).grants["p"]
    assert grant.claude_tools == {"WebFetch"}


def test_denying_everything_denies_the_model_tools_too() -> None:
    grant = grant_of('{name: p, capabilities: [tools], disallowed_tools: ["*"]}')
    assert grant.claude_tools == frozenset()


def test_allowing_every_event_allows_no_model_tool() -> None:
    grant = grant_of('{name: p, operator: true, allowed_tools: ["*"]}')
    assert grant.claude_tools == frozenset()


@pytest.mark.parametrize("key", ["additional_tools", "disallowed_tools"])
def test_an_unusual_model_tool_is_accepted_with_a_warning(key: str) -> None:
    grant = grant_of(f"name: p\n{key}: [WebFtch]")
    assert told(grant.warnings) == [f"p0.yaml:2:{len(key) + 4} unknown_model_tool"]
    assert grant.warnings[0].hint == "did you mean 'WebFetch'?"


def test_a_model_tool_that_a_capability_defines_is_known() -> None:
    text = "capabilities: {a: {description: x, claude_tools: [Zylophone]}}"
    assert grant_of("{name: p, disallowed_tools: [Zylophone]}", text).warnings == ()


def test_a_doubtful_model_tool_of_a_capability_is_told() -> None:
    catalogue = compiled("capabilities:\n  a: {description: x, claude_tools: [WebFtch]}")
    assert told(catalogue.warnings) == ["capabilities.yaml:2:38 unknown_model_tool"]


def test_hidden_events_are_granted_but_not_shown() -> None:
    grant = grant_of("{name: p, capabilities: [hidden, events]}")
    assert "agent:spawn" in grant.events
    assert grant.exposed == {"bash:run", "tools:list"}


def test_exposure_never_grants() -> None:
    text = SAME_WORD.replace("mcp_tools: false", "mcp_tools: true")
    assert grant_of("{name: p, capabilities: [events]}", text).events == {"bash:run", "tools:list"}
    denied = grant_of("{name: p, capabilities: [hidden], disallowed_tools: [agent:spawn]}", text)
    assert denied.exposed == denied.events == frozenset()


def test_an_event_is_shown_when_one_of_its_capabilities_shows_it() -> None:
    text = SAME_WORD + "  shown: {description: x, event_patterns: [agent:spawn]}\n"
    assert grant_of("{name: p, capabilities: [hidden, shown]}", text).exposed == {"agent:spawn"}


def test_handlers_decide_what_belongs_to_a_capability_that_lists_nothing() -> None:
    text = """
capabilities:
  open: {description: x, aliases: [formerly_open]}
  closed: {description: x, event_patterns: []}
"""
    events = [
        event("a:one", capability="open"),
        event("a:two", capability="formerly_open"),
        event("a:three", capability="closed"),
        event("a:four", capability="unheard_of"),
    ]
    catalogue = compiled(text, "{name: p, capabilities: [open, closed]}", events=events)
    assert catalogue.grants["p"].events == {"a:one", "a:two"}


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
        for one in ALL_EVENTS:
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
    st.lists(st.sampled_from([*ALL_EVENTS, "a:*", "c:*", "Bash"]), max_size=3),
    st.lists(st.sampled_from(ALL_CAPABILITIES), max_size=3),
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
    card = picture(catalogue("{name: p, capabilities: [all], max_effect: read}"), "p").nodes[0]
    assert "max effect: read" in card.marks


def test_a_migration_counts_what_will_exist_as_well() -> None:
    """Under the ceiling nothing of `s:later` is left now; its handler may come tomorrow."""
    found = catalogue("{name: p, allowed_tools: ['s:get', 's:later'], max_effect: read}")
    moved = migrate(found, found.compositions["p"])
    assert moved.additional_tools == ("s:get", "s:later")


def test_what_a_capability_shows_is_still_shown_beside_added_events() -> None:
    grant = granted(
        "name: p\ncapabilities: [state_read]\nadditional_tools: [agent:spawn, web:fetch]"
    )
    assert {"state:get", "state:list", "agent:spawn"} <= grant.exposed
    assert grant.exposed == grant.events


def test_an_added_event_is_shown_beside_a_capability_that_is_not() -> None:
    text = (
        "capabilities:\n"
        "  hidden: {description: d, event_patterns: [state:get], mcp_tools: false}\n"
        "  shown: {description: d, event_patterns: [state:list]}\n"
    )
    profile = "name: p\ncapabilities: [hidden, shown]\nadditional_tools: [state:set, agent:spawn]"
    grant = granted(profile, capabilities=text)
    assert grant.events == {"state:get", "state:list", "state:set", "agent:spawn"}
    assert grant.exposed == {"state:list", "state:set", "agent:spawn"}
