"""What belongs together."""

import pytest
from tests.features.discovery.catalogues import skill, tool

from remit.features.discovery.graph import Graph, composed_edges


def _size(_group: str) -> int:
    return 3


def test_an_edge_keeps_all_its_types() -> None:
    graph = Graph(
        [
            skill("a", tags=("x", "y", "z"), required_tools=("b",), composed_with=("b",)),
            tool("b", tags=("x", "y")),
        ],
        {},
    )
    assert graph.edges(0, 1, _size) == {
        "DEPENDS_ON": 1.0,
        "COMPOSED_WITH": 0.5,
        "TAGGED_WITH": 0.6,
    }
    assert graph.edges(1, 0, _size) == graph.edges(0, 1, _size)


def test_one_shared_tag_is_no_edge() -> None:
    graph = Graph([tool("a", tags=("x", "y")), tool("b", tags=("x", "z"))], {})
    assert graph.edges(0, 1, _size) == {}


@pytest.mark.parametrize(("size", "joined"), [(1, False), (2, True), (8, True), (9, False)])
def test_a_category_joins_groups_of_two_to_eight(size: int, *, joined: bool) -> None:
    graph = Graph([tool("a", category="c"), tool("b", category="c")], {})
    expected = {"SAME_CATEGORY": 0.1} if joined else {}
    assert graph.edges(0, 1, lambda _group: size) == expected


def test_a_tool_and_a_skill_of_one_category_are_not_one_group() -> None:
    graph = Graph([tool("a", category="c"), skill("b", category="c")], {})
    assert graph.edges(0, 1, _size) == {}


def test_no_number_of_neighbours_lifts_by_more_than_the_boost() -> None:
    graph = Graph([tool(f"t{at}", tags=("x", "y", "z")) for at in range(10)], {})
    assert set(graph.boosts(range(10), _size).values()) == {0.15}
    assert set(graph.boosts(range(10), _size, 0.4).values()) == {0.4}


def test_used_together_once_is_an_accident() -> None:
    pairs = {("tool:a", "tool:b"): 1.0, ("tool:a", "tool:c"): 40.0}
    assert composed_edges(pairs) == {("tool:a", "tool:c"): pytest.approx(0.5, abs=0.001)}


def test_what_is_used_together_comes_along_both_ways() -> None:
    graph = Graph([tool("a"), tool("b")], {("tool:a", "tool:b"): 0.4})
    assert graph.neighbours(0) == [(1, 0.4)]
    assert graph.neighbours(1) == [(0, 0.4)]


def test_a_dependency_is_not_pulled_in_backwards() -> None:
    graph = Graph([skill("a", required_tools=("x:b",)), tool("b")], {})
    assert graph.neighbours(0) == [(1, 1.0)]
    assert graph.neighbours(1) == []


def test_a_required_tool_that_is_not_here_is_noted() -> None:
    assert Graph([skill("a", required_tools=("gh", "b")), tool("b")], {}).missing == {0: ("gh",)}


def test_an_id_beats_an_event_and_an_event_a_name() -> None:
    graph = Graph(
        [
            skill("s", required_tools=("tool:one",)),
            tool("one"),
            tool("two", event="tool:one"),
            skill("tool:one"),
        ],
        {},
    )
    assert graph.depends == {0: (1,)}


def test_edges_are_counted_by_type() -> None:
    graph = Graph(
        [
            skill("a", required_tools=("b",), category="c", tags=("x", "y")),
            tool("b", tags=("x", "y"), category="c"),
            skill("d", category="c"),
        ],
        {("skill:a", "skill:d"): 0.3},
    )
    assert graph.counts([0, 1, 2]) == {
        "DEPENDS_ON": 1,
        "COMPOSED_WITH": 1,
        "TAGGED_WITH": 1,
        "SAME_CATEGORY": 1,
    }
    assert graph.counts([2]) == {
        "DEPENDS_ON": 0,
        "COMPOSED_WITH": 0,
        "TAGGED_WITH": 0,
        "SAME_CATEGORY": 0,
    }


def test_a_skill_that_requires_a_tool_of_its_own_name_depends_on_the_tool() -> None:
    graph = Graph([skill("web-search", required_tools=("web-search",)), tool("web-search")], {})
    assert graph.depends == {0: (1,)}


def test_a_skill_alone_does_not_satisfy_its_own_requirement() -> None:
    graph = Graph([skill("web-search", required_tools=("web-search",))], {})
    assert graph.missing == {0: ("web-search",)}


def test_learned_pairs_are_found_whatever_letters_their_ids_have() -> None:
    assert Graph([tool("Big"), tool("b")], {("tool:Big", "tool:b"): 0.4}).composed[0] == {1: 0.4}
