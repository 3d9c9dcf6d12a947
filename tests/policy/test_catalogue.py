"""Capabilities of one revision: what they require, in which order, and which of them grant."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.texts import compiled, granted, own, refused, told

from remit.errors import Place, Problem
from remit.policy.capabilities import circle_problem, dependencies_first
from remit.policy.decide import decide


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


NODES = "abcdef"
GRAPHS = st.dictionaries(
    st.sampled_from(NODES), st.lists(st.sampled_from(NODES + "z"), max_size=3), max_size=6
)


@given(GRAPHS)
def test_everything_is_listed_once_after_what_it_refers_to(graph: dict[str, list[str]]) -> None:
    order, circles = dependencies_first(graph)
    assert sorted(order) == sorted(graph)
    if not circles:
        for name, references in graph.items():
            for other in references:
                assert other not in graph or order.index(other) < order.index(name)


@given(GRAPHS)
def test_a_circle_is_a_chain_of_real_links_that_ends_where_it_starts(
    graph: dict[str, list[str]],
) -> None:
    _, circles = dependencies_first(graph)
    for circle in circles:
        assert circle[0] == circle[-1]
        assert all(b in graph[a] for a, b in pairwise(circle))


@given(GRAPHS)
def test_there_are_circles_exactly_when_something_reaches_itself(
    graph: dict[str, list[str]],
) -> None:
    reached = {name: set(graph[name]) for name in graph}
    for _ in graph:
        for name in graph:
            reached[name].update(*(reached[other] for other in reached[name] if other in graph))
    _, circles = dependencies_first(graph)
    assert bool(circles) == any(name in reached[name] for name in graph)


def test_a_chain_of_100_000_is_no_different_from_a_short_one() -> None:
    graph = {f"n{at:06}": [f"n{at + 1:06}"] for at in range(100_000)}
    order, circles = dependencies_first(graph)
    assert order[0] == "n099999"
    assert order[-1] == "n000000"
    assert circles == []


def test_a_circle_is_printed_as_a_chain() -> None:
    problem = circle_problem(["a", "b", "a"], Place("c.yaml", 3), "requires")
    assert problem.message == "requires goes in a circle: a → b → a"
    assert problem.code == "cycle"


def catalogue_with(status: str) -> str:
    return f"""capabilities:
  thing: {{description: x, event_patterns: [a:thing], requires: [helper], status: {status}}}
  helper: {{description: x, event_patterns: [a:help]}}
  user: {{description: x, event_patterns: [a:use], requires: [thing]}}
  newer: {{description: x, event_patterns: [a:new], replaces: [thing]}}
"""


EVENTS = ["a:thing", "a:help", "a:use", "a:new"]


@pytest.mark.parametrize("status", ["coming_soon", "retired"])
def test_an_inert_capability_grants_nothing_and_brings_nothing(status: str) -> None:
    profile = "name: p\ncapabilities: [thing]"
    grant = compiled(catalogue_with(status), profile, events=EVENTS).grants["p"]
    assert grant.events == frozenset()
    assert grant.capabilities == ()
    assert told(grant.warnings) == [f"p0.yaml:2:16 {status}"]
    assert decide(grant, "a:thing") == "no_grant"


@pytest.mark.parametrize("status", ["coming_soon", "retired"])
def test_an_agent_keeps_running_when_something_it_requires_is_inert(status: str) -> None:
    grant = compiled(catalogue_with(status), "name: p\ncapabilities: [user]", events=EVENTS).grants[
        "p"
    ]
    assert grant.events == {"a:use"}
    assert told(grant.warnings) == ["p0.yaml:1:7 broken_requirement"]
    assert f"user is granted but thing, which it requires, is {status}" in grant.warnings[0].message


def test_a_deprecated_capability_works_and_is_warned_about() -> None:
    profile = "name: p\ncapabilities: [thing]"
    grant = compiled(catalogue_with("deprecated"), profile, events=EVENTS).grants["p"]
    assert grant.events == {"a:thing", "a:help"}
    assert told(grant.warnings) == ["p0.yaml:2:16 deprecated"]
    assert grant.warnings[0].hint == "use 'newer'"


@pytest.mark.parametrize("status", ["coming_soon", "retired"])
def test_an_inert_base_grants_nothing(status: str) -> None:
    text = f"""capabilities:
  base: {{description: x, event_patterns: [a:use], always_included: true, status: {status}}}
"""
    assert compiled(text, "{name: p}", events=EVENTS).grants["p"].events == frozenset()


def test_switching_an_inert_capability_off_is_no_mistake() -> None:
    profile = "{name: p, capabilities: {thing: false}}"
    grant = compiled(catalogue_with("retired"), profile, events=EVENTS).grants["p"]
    assert grant.warnings == ()


DOUBTFUL = """
capabilities:
  web:
    description: d
    claude_tools: [WebFetsh]
"""


def test_a_model_tool_that_looks_misspelt_is_a_warning_with_its_place_and_a_hint() -> None:
    (problem,) = (
        problem
        for problem in compiled(DOUBTFUL, "name: p\ncapabilities: [web]").warnings
        if problem.code == "unknown_model_tool"
    )
    assert str(problem.place) == "capabilities.yaml:5:20"
    assert problem.message == "'WebFetsh' is no model tool that we know"
    assert problem.hint == "did you mean 'WebFetch'?"
    assert problem.severity == "warning"
    assert not problem.is_error


GATED = """
capabilities:
  net:
    description: d
    event_patterns: [web:fetch]
    claude_tools: [WebFetch]
    resource_limits: {max_depth: 2}
    system_prompt: careful
    skills: [reading]
    security_review_required: true
"""


def test_the_fingerprint_of_a_definition_is_the_same_in_every_version_of_remit() -> None:
    # Approvals are stored with it: when it changes, every approval that was given is void.
    found = compiled(GATED, "name: p\ncapabilities: [net]").scopes["net"].fingerprint
    assert found == "875ab576649652a466ad5827987dd5f25bd7c769d47df9afcc928da12c9b8742"
