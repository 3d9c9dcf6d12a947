"""Model tools: a name space of their own, never confused with events; exposure never grants."""

import pytest
from tests.policy.texts import compiled, event, told

from remit.model.grant import Grant

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
