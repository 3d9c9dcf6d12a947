"""Broken requirements: what is granted but cannot work."""

from tests.policy.texts import compiled, event, granted, told


def test_a_denied_requirement_is_told_at_the_denial() -> None:
    grant = granted("name: p\ncapabilities: [state_write]\ndisallowed_tools: [state:get]")
    (warning,) = grant.warnings
    assert told([warning]) == ["p0.yaml:3:20 broken_requirement"]
    assert warning.message == "state_write is granted but state:get, which it requires, is denied"
    assert warning.hint == "allow state:get, or switch state_write off"


def test_each_denied_event_of_a_requirement_is_told() -> None:
    profile = "{name: p, capabilities: [state_write], disallowed_tools: [state:get, state:list]}"
    grant = granted(profile)
    assert len(grant.warnings) == 2


def test_a_denial_of_both_sides_breaks_nothing() -> None:
    grant = granted('{name: p, capabilities: [state_write], disallowed_tools: ["state:*"]}')
    assert grant.warnings == ()


def test_a_denial_that_no_requirement_needs_is_fine() -> None:
    assert (
        granted("{name: p, capabilities: [state_write], disallowed_tools: [state:set]}").warnings
        == ()
    )


def test_a_requirement_taken_by_its_old_name_is_told() -> None:
    text = """
capabilities:
  read: {description: x, event_patterns: [state:get]}
  write: {description: x, event_patterns: [state:set], requires: [read]}
"""
    events = (event("state:get", aliases=("store:read",)), "state:set")
    profile = "name: p\ncapabilities: [write]\ndisallowed_tools: [store:read]"
    codes = {warning.code for warning in compiled(text, profile, events=events).warnings}
    assert codes == {"broken_requirement", "old_name"}


def test_warnings_of_all_profiles_are_in_the_catalogue_in_order() -> None:
    catalogue = compiled(
        "capabilities:\n  a: {description: x, event_patterns: [no:such]}",
        "name: q\nadditional_tools: [state:gett]",
        "name: p\nadditional_tools: [agent:spwan]",
    )
    assert told(catalogue.warnings) == [
        "capabilities.yaml:2:40 dead_pattern",
        "p0.yaml:2:20 dead_pattern",
        "p1.yaml:2:20 dead_pattern",
    ]
