"""Tool lists: what they add, and that a denial beats everything that adds."""

import pytest
from tests.policy.texts import CAPABILITIES, compiled, event, granted, own, refused, told

from remit.policy.decide import decide

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
