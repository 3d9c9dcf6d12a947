"""Shown is a part of allowed, and nothing else leaves a trace."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.discovery.catalogues import REQUESTS, descriptors, grant, index_of, skill, tool

from remit.features.discovery.rank import Ranker, best, ordered, with_company
from remit.features.discovery.relevance import WORDS_ALONE, calibration
from remit.features.discovery.view import View, view_of
from remit.model.descriptor import Descriptor


def _seen(view: View) -> set[str]:
    return {view.index.descriptors[row].id for row in view.rows}


def test_a_tool_is_seen_by_those_who_may_call_it() -> None:
    index = index_of([tool("a"), tool("b")])
    assert _seen(view_of(index, grant("x:a"))) == {"tool:a"}


def test_a_bound_skill_is_seen_by_holders_of_one_of_its_capabilities() -> None:
    index = index_of([skill("s", capabilities=("c1", "c2")), skill("free")])
    assert _seen(view_of(index, grant(capabilities=("c2",)))) == {"skill:s", "skill:free"}
    assert _seen(view_of(index, grant(capabilities=("c3",)))) == {"skill:free"}


def test_a_skill_that_needs_a_forbidden_tool_is_hidden_however_far_down_the_tool_is() -> None:
    index = index_of(
        [
            skill("far", required_tools=("near",)),
            skill("near", required_tools=("x:a",)),
            tool("a"),
            skill("other", required_tools=("gh",)),
        ]
    )
    assert _seen(view_of(index, grant())) == {"skill:other"}
    assert _seen(view_of(index, grant("x:a"))) == {
        "skill:far",
        "skill:near",
        "skill:other",
        "tool:a",
    }


def test_a_chain_of_needs_that_is_too_long_stays_hidden() -> None:
    chain = [skill(f"s{at:02}", required_tools=(f"s{at + 1:02}",)) for at in range(40)]
    index = index_of([*chain, skill("s40", required_tools=("x:a",)), tool("a")])
    assert _seen(view_of(index, grant())) == set()


def test_the_operator_sees_everything() -> None:
    index = index_of([tool("a"), skill("s", capabilities=("c",))])
    assert _seen(view_of(index, grant(), everything=True)) == {"tool:a", "skill:s"}


GRANTS = st.builds(
    lambda events, held: grant(*events, capabilities=tuple(held)),
    st.lists(st.integers(0, 11).map(lambda at: f"x:n{at}"), unique=True),
    st.lists(st.sampled_from(["c1", "c2"]), unique=True),
)


def _answer(found: list[Descriptor], holder: object, request: str) -> list[tuple[str, float]]:
    index = index_of(found)
    view = view_of(index, holder)  # type: ignore[arg-type]
    ranking = Ranker(None).rank(view, request, view.allowed)
    rows = best(ranking.fused, view, 5, 0.3)
    hits = ordered(ranking, rows, ranking.relevance(rows, calibration(WORDS_ALONE))[0])
    company = with_company(hits, view, view.allowed, 3)
    return [(index.descriptors[hit.row].id, round(hit.relevance, 5)) for hit in company]


@given(descriptors(), GRANTS, REQUESTS)
@settings(max_examples=200)
def test_nothing_is_found_that_the_grant_does_not_allow(
    found: list[Descriptor], holder: object, request: str
) -> None:
    allowed = _seen(view_of(index_of(found), holder))  # type: ignore[arg-type]
    assert {name for name, _ in _answer(found, holder, request)} <= allowed


@given(descriptors(), GRANTS, REQUESTS)
@settings(max_examples=200)
def test_what_others_may_see_changes_neither_hits_nor_scores_nor_counts(
    found: list[Descriptor], holder: object, request: str
) -> None:
    index = index_of(found)
    view = view_of(index, holder)  # type: ignore[arg-type]
    alone = [index.descriptors[row] for row in view.rows]
    assert _answer(found, holder, request) == _answer(alone, holder, request)
    own = view_of(index_of(alone), holder)  # type: ignore[arg-type]
    assert (view.total, view.kinds(), view.categories(), view.edge_counts()) == (
        own.total,
        own.kinds(),
        own.categories(),
        own.edge_counts(),
    )
