"""Requires: transitive at any depth, circles and unknown names refused."""

import pytest
from tests.policy.texts import compiled, granted, own, refused, told

from remit.model.place import Problem


def chain(length: int, *, closed: bool) -> str:
    """A chain of requires; each capability holds one event of its number."""
    lines = ["capabilities:"]
    for at in range(length):
        following = at + 1 if at + 1 < length else 0
        lines.append(f"  c{at}:")
        lines.append("    description: x")
        lines.append(f"    event_patterns: [e:n{at}]")
        if closed or at + 1 < length:
            lines.append(f"    requires: [c{following}]")
    return "\n".join(lines)


def only(problems: tuple[Problem, ...]) -> Problem:
    assert len(problems) == 1, told(problems)
    return problems[0]


def test_a_capability_brings_what_it_requires() -> None:
    grant = granted("{name: p, capabilities: [state_write]}")
    assert own(grant) == {"state:get", "state:list", "state:set", "state:delete"}
    assert grant.capabilities == ("base", "state_read", "state_write")


@pytest.mark.parametrize("length", [2, 50, 2_000])
def test_requires_is_followed_to_the_end_of_the_chain(length: int) -> None:
    events = [f"e:n{at}" for at in range(length)]
    catalogue = compiled(
        chain(length, closed=False), "{name: p, capabilities: [c0]}", events=events
    )
    assert catalogue.grants["p"].events == set(events)


def test_what_is_required_does_not_bring_what_requires_it() -> None:
    assert own(granted("{name: p, capabilities: [state_read]}")) == {"state:get", "state:list"}


@pytest.mark.parametrize("length", [1, 2, 50])
def test_a_circle_is_refused_with_the_whole_chain(length: int) -> None:
    events = [f"e:n{at}" for at in range(length)]
    problem = only(refused(chain(length, closed=True), events=events))
    assert str(problem.place) == "capabilities.yaml:2:3"
    assert problem.code == "cycle"
    links = " → ".join([*(f"c{at}" for at in range(length)), "c0"])
    assert problem.message == f"requires goes in a circle: {links}"


def test_a_circle_through_an_old_name_is_a_circle() -> None:
    text = """
capabilities:
  a: {description: x, requires: [old_b]}
  b: {description: x, requires: [a], aliases: [old_b]}
"""
    assert "a → b → a" in only(refused(text)).message


def test_an_unknown_requirement_is_refused_with_a_suggestion() -> None:
    text = """capabilities:
  state_read: {description: x, event_patterns: [state:get]}
  state_write:
    description: x
    requires: [state_raed]
"""
    problem = only(refused(text))
    assert told([problem]) == ["capabilities.yaml:5:16 unknown_capability"]
    assert problem.hint == "did you mean 'state_read'?"


def test_an_unread_catalogue_is_not_blamed_on_those_who_refer_to_it() -> None:
    profile = "{name: p, capabilities: [state_read], disallowed_tools: [no:such]}"
    assert only(refused("capabilities: [", profile)).code == "yaml_syntax"


def test_one_bare_name_may_stand_for_a_list() -> None:
    text = """
capabilities:
  a: {description: x, event_patterns: [state:get]}
  b: {description: x, event_patterns: [state:set], requires: a}
"""
    grant = granted("{name: p, capabilities: [b]}", capabilities=text)
    assert own(grant) == {"state:get", "state:set"}


def test_every_profile_gets_the_base_and_what_the_base_requires() -> None:
    text = """
capabilities:
  a: {description: x, event_patterns: [state:get]}
  b: {description: x, event_patterns: [state:set], requires: [a], always_included: true}
"""
    assert granted("{name: p}", capabilities=text).events == {"state:get", "state:set"}


def test_the_base_stays_whatever_the_profile_says() -> None:
    for profile in ("{name: p, capabilities: {base: false}}", "{name: p, capabilities: []}"):
        assert "system:health" in granted(profile).events
