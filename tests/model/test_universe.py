"""The events of a revision, and what a wildcard covers of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.catalogues import universe_of_names
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

from remit.config.definitions.files import parse_definitions
from remit.model.names import EventPattern, parse_event_name
from remit.policy.compile import compile_definitions
from remit.policy.decide import decide

NAMES = st.sets(
    st.from_regex(r"[a-c]{1,2}:[a-c_]{0,1}[a-c]{1,2}", fullmatch=True).filter(
        lambda name: ":_" not in name
    )
)
PREFIXES = st.from_regex(r"[a-c]{1,2}:[a-c]{0,2}", fullmatch=True)


@given(NAMES, PREFIXES)
def test_a_wildcard_expands_to_the_names_that_start_with_its_prefix(
    names: set[str], prefix: str
) -> None:
    universe = universe_of_names(names)
    bits = universe.granted_by(EventPattern(prefix, exact=False))
    assert universe.names_in(bits) == sorted(n for n in names if n.startswith(prefix))


@given(NAMES)
def test_names_and_bits_are_two_forms_of_one_set(names: set[str]) -> None:
    universe = universe_of_names(names)
    assert universe.names_in(universe.everything) == sorted(names)
    assert universe.bits_of(names) == universe.everything
    assert universe.names_in(0) == []
    assert universe.bits_of(["no:such", "nothing"]) == 0


def test_no_wildcard_grants_an_event_that_must_be_named() -> None:
    universe = universe_of([event("state:get"), event("state:wipe", wildcard=False)])
    for text in ("state:*", "state:w*", "state:wipe*", "*"):
        granted = universe.names_in(universe.granted_by(EventPattern.parse(text)))
        assert "state:wipe" not in granted
    named = universe.granted_by(EventPattern.parse("state:wipe"))
    assert universe.names_in(named) == ["state:wipe"]


def test_a_wildcard_denies_also_what_it_could_not_grant() -> None:
    universe = universe_of([event("state:get"), event("state:wipe", wildcard=False)])
    for text in ("state:*", "*"):
        denied = universe.denied_by(EventPattern.parse(text))
        assert universe.names_in(denied) == ["state:get", "state:wipe"]


def test_an_old_name_stands_for_the_present_one() -> None:
    universe = universe_of([event("state:get", aliases=("store:read",)), "store:list"])
    old = EventPattern.parse("store:read")
    assert universe.canonical("store:read") == "state:get"
    assert universe.names_in(universe.granted_by(old)) == ["state:get"]
    assert universe.names_in(universe.denied_by(old)) == ["state:get"]


def test_a_wildcard_grants_no_event_by_its_old_name_but_denies_it() -> None:
    universe = universe_of([event("state:get", aliases=("store:read",)), "store:list"])
    everything_old = EventPattern.parse("store:*")
    assert universe.names_in(universe.granted_by(everything_old)) == ["store:list"]
    assert universe.names_in(universe.denied_by(everything_old)) == ["state:get", "store:list"]
    assert EventPattern.parse("state:get") in universe.denials(everything_old)


def test_an_old_name_never_takes_over_an_event_that_exists() -> None:
    universe = universe_of([event("state:wipe", aliases=("state:get",)), "state:get"])
    assert universe.canonical("state:get") == "state:get"
    bits = universe.granted_by(EventPattern.parse("state:get"))
    assert universe.names_in(bits) == ["state:get"]


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


EVENTS = [event("state:get", aliases=("state:read",)), event("state:get_all")]
TEXT = 'capabilities:\n  all:\n    description: d\n    event_patterns: ["state:*"]\n'


def test_an_old_name_becomes_the_present_name_and_no_prefix() -> None:
    found = universe_of(EVENTS).present(EventPattern.parse("state:read"))
    assert found == EventPattern.parse("state:get")
    assert not found.covers(parse_event_name("state:get_all"))


def test_a_denial_by_an_old_name_denies_no_event_whose_name_only_starts_alike() -> None:
    profile = "name: p\ncapabilities: [all]\ndisallowed_tools: [state:read]"
    grant = compiled(TEXT, profile, events=EVENTS).grants["p"]
    assert decide(grant, "state:get") == "explicit_deny"
    assert decide(grant, "state:get_all") == "granted"
    assert decide(grant, "state:get_nothing") == "no_grant"


@pytest.mark.parametrize("count", [1, 2, 12, 13, 16, 17, 32, 33, 64, 65, 200])
def test_a_set_of_any_size_is_told_by_its_own_names_and_no_others(count: int) -> None:
    universe = universe_of(f"space:e{number:04}" for number in range(401))
    chosen = list(universe.names[1 : 2 * count : 2])
    assert universe.names_in(universe.bits_of(chosen)) == chosen
