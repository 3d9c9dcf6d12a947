"""Sorting things that refer to each other, and naming the circles."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from remit.model.place import Place
from remit.policy.catalogue import circle_problem, dependencies_first

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
