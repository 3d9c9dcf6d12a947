"""What mutants of `resolve` got away with: an added event takes nothing out of the tool list."""

from tests.policy.texts import granted


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
