"""Lint: drift between events, capabilities and profiles, each kind with its place."""

from typing import Any

from tests.policy.texts import compiled, event

from remit.errors import Place
from remit.model.event import EventSpec
from remit.policy.lint import lint

CATALOGUE = """capabilities:
  used:
    description: x
    event_patterns: [a:one, a:gone, "b:*"]
    requires: [required]
  required: {description: x, event_patterns: [a:two]}
  unused: {description: x, event_patterns: [a:three]}
  future: {description: x, event_patterns: [a:three], status: coming_soon}
  dusty: {description: x, event_patterns: [a:four], status: deprecated}
  dead: {description: x, event_patterns: [a:four], status: retired}
  renamed: {description: x, event_patterns: [a:four], aliases: [former]}
  reviewed: {description: x, event_patterns: [a:five], security_review_required: true}
"""
PROFILE = """name: p
capabilities: [dead, used, dusty, former, reviewed]
disallowed_tools: [a:two]
additional_tools: [a:nothing]
"""
EVENTS: list[str | EventSpec] = [
    *("a:one", "a:two", "a:three", "a:four", "a:five"),
    event("z:alone", capability="unheard", place=Place("h.py", 7)),
    event("z:also", capability="unheard", place=Place("h.py", 3)),
    event("a_b:c"),
    event("a:b_c"),
]


def findings(kind: str) -> list[dict[str, Any]]:
    return lint(compiled(CATALOGUE, PROFILE, events=EVENTS))[kind]


def names(kind: str) -> list[str]:
    return [finding["name"] for finding in findings(kind)]


def test_dead_patterns_are_told_with_their_places() -> None:
    assert names("dead_patterns") == ["a:gone", "b:*", "a:nothing"]
    first = findings("dead_patterns")[0]
    assert (first["file"], first["line"], first["column"]) == ("capabilities.yaml", 4, 29)


def test_events_that_no_capability_holds_are_told() -> None:
    assert names("unmapped_events") == ["a:b_c", "a_b:c", "z:alone", "z:also"]
    assert findings("unmapped_events")[2]["line"] == 7


def test_capabilities_that_no_profile_reaches_are_told() -> None:
    assert names("unused_capabilities") == ["unused"]
    assert findings("unused_capabilities")[0]["line"] == 7


def test_capabilities_that_only_handlers_name_are_told() -> None:
    (finding,) = findings("undefined_capabilities")
    assert finding["name"] == "unheard"
    assert finding["events"] == ["z:alone", "z:also"]


def test_old_deprecated_and_retired_names_in_use_are_told_in_the_order_of_the_file() -> None:
    assert names("deprecated_in_use") == ["dead", "dusty", "former"]


def test_broken_requirements_are_told() -> None:
    (finding,) = findings("broken_requirements")
    assert (finding["name"], finding["file"], finding["line"]) == ("used", "p0.yaml", 3)


def test_tool_names_that_two_events_wish_for_are_told() -> None:
    assert findings("tool_name_conflicts") == [
        {
            "name": "a_b_c",
            "events": ["a:b_c", "a_b:c"],
            "names": {"a:b_c": "a__b_c", "a_b:c": "a_b__c"},
        }
    ]


def test_an_old_name_of_a_defined_capability_is_not_undefined() -> None:
    text = "capabilities: {new: {description: x, aliases: [old]}}"
    catalogue = compiled(
        text, "{name: p, capabilities: [new]}", events=[event("a:b", capability="old")]
    )
    found = lint(catalogue)
    assert found["undefined_capabilities"] == found["unmapped_events"] == []


def test_a_tidy_catalogue_has_no_findings() -> None:
    text = "capabilities: {a: {description: x, event_patterns: [a:b]}}"
    catalogue = compiled(text, "{name: p, capabilities: [a]}", events=["a:b"])
    assert all(found == [] for found in lint(catalogue).values())
