"""Wildcards in profiles: what they grant, and what they must never grant."""

import pytest
from tests.policy.texts import (
    CAPABILITIES,
    compiled,
    event,
    files_of,
    granted,
    own,
    refused,
    told,
    universe_of,
)

from remit.config.definitions.parse import parse_definitions
from remit.policy.compile import compile_definitions
from remit.policy.decide import decide

NAMED_ONLY = event("state:wipe", wildcard=False)
WIDE = """
capabilities:
  all_state: {description: x, event_patterns: ["state:*"]}
  wiping: {description: x, event_patterns: [state:wipe]}
"""


def test_a_pattern_of_a_capability_grants_what_it_covers() -> None:
    assert own(granted("{name: p, capabilities: [messaging]}")) == {
        "message:publish",
        "agent:send_message",
    }


def test_a_pattern_in_additional_tools_grants_what_it_covers() -> None:
    grant = granted('{name: p, additional_tools: ["agent:s*"]}')
    assert own(grant) == {"agent:spawn", "agent:send_message"}


@pytest.mark.parametrize(
    "profile",
    [
        "{name: p, capabilities: [all_state]}",
        '{name: p, additional_tools: ["state:*"]}',
        '{name: p, allowed_tools: ["state:wip*"]}',
        '{name: p, operator: true, allowed_tools: ["*"]}',
    ],
)
def test_no_wildcard_ever_grants_an_event_that_must_be_named(profile: str) -> None:
    catalogue = compiled(WIDE, profile, events=["state:get", NAMED_ONLY])
    assert "state:wipe" not in catalogue.grants["p"].events
    assert decide(catalogue.grants["p"], "state:wipe") == "no_grant"


@pytest.mark.parametrize(
    "profile", ["{name: p, capabilities: [wiping]}", "{name: p, additional_tools: [state:wipe]}"]
)
def test_an_event_that_must_be_named_is_granted_by_its_name(profile: str) -> None:
    catalogue = compiled(WIDE, profile, events=["state:get", NAMED_ONLY])
    assert catalogue.grants["p"].events == {"state:wipe"}


@pytest.mark.parametrize("denial", ["state:*", "state:w*", "*"])
def test_a_wildcard_denies_an_event_that_must_be_named(denial: str) -> None:
    profile = f'{{name: p, capabilities: [wiping], disallowed_tools: ["{denial}"]}}'
    catalogue = compiled(WIDE, profile, events=["state:get", NAMED_ONLY])
    assert catalogue.grants["p"].events == frozenset()


@pytest.mark.parametrize("key", ["allowed_tools", "additional_tools"])
def test_the_bare_star_is_refused_where_it_would_grant(key: str) -> None:
    problems = refused(CAPABILITIES, f'name: p\n{key}: ["*"]')
    column = len(key) + 4
    assert told(problems) == [f"p0.yaml:2:{column} bare_wildcard"]
    assert "operator: true" in problems[0].hint


def test_a_capability_never_holds_every_event() -> None:
    text = 'capabilities:\n  all:\n    description: x\n    event_patterns: ["*"]'
    assert told(refused(text)) == ["capabilities.yaml:4:22 bare_wildcard"]


def test_an_operator_profile_may_allow_everything() -> None:
    grant = granted('{name: p, operator: true, allowed_tools: ["*"]}')
    assert "agent:terminate" in grant.events


def test_building_on_an_operator_profile_does_not_make_an_operator() -> None:
    operator = '{name: op, operator: true, allowed_tools: ["*"]}'
    for key in ("extends", "mixins"):
        problems = refused(CAPABILITIES, operator, f"{{name: p, {key}: [op]}}")
        assert told(problems) == ["p0.yaml:1:44 bare_wildcard"]
        assert "'p'" in problems[0].message


def test_the_bare_star_may_deny_everything_even_the_base() -> None:
    grant = granted('{name: p, capabilities: [state_write], disallowed_tools: ["*"]}')
    assert grant.events == frozenset()


def test_a_new_event_under_a_granted_pattern_is_in_the_next_revision_only() -> None:
    definitions = parse_definitions(files_of(WIDE, "{name: p, capabilities: [all_state]}"))
    before = compile_definitions(definitions, universe_of(["state:get", "state:wipe"]))
    after = compile_definitions(
        definitions, universe_of(["state:get", "state:wipe", "state:new"]), revision=2
    )
    assert decide(before.grants["p"], "state:new") == "no_grant"
    assert after.grants["p"].events - before.grants["p"].events == {"state:new"}
    assert after.grants["p"].revision == 2
