"""Ranking a request: words, vectors and the graph; and texts that are no descriptors."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.discovery.catalogues import OFFICE, VECTORS, index_of, skill, tool

from remit.features.discovery.embedders import StaticVectors
from remit.features.discovery.embedding import (
    Embedder,
    EmbeddingError,
    Floats,
    VectorCache,
    np,
)
from remit.features.discovery.index import Indexer
from remit.features.discovery.learning.lessons import Lessons
from remit.features.discovery.rank import (
    MAX_CLAUSES,
    Evidence,
    Hit,
    Ranker,
    Ranking,
    TextRanker,
    best,
    clauses,
    ordered,
    shortened,
    with_company,
)
from remit.features.discovery.view import View
from remit.model.descriptor import Descriptor
from remit.text.counting import static_folder

needs_vectors = pytest.mark.skipif(VECTORS is None, reason="the extra 'search' is not installed")


def found(
    request: str,
    descriptors: tuple[Descriptor, ...] = OFFICE,
    *,
    embedder: Embedder | None = None,
    least: float = 0.3,
    lessons: Lessons | None = None,
) -> list[str]:
    index = index_of(descriptors, lessons or Lessons(), vectors=embedder is not None)
    view = View(index, np.ones(len(index), np.bool_))
    rows = best(Ranker(embedder).rank(view, request, view.allowed).fused, view, 5, least)
    return [index.descriptors[row].name for row in rows]


@pytest.mark.parametrize(
    ("request_", "first"),
    [
        ("send a message to Ann", "send_mail"),
        ("What will the weather be like?", "get_weather"),
        ("invoices for a customer", "create_invoice"),
    ],
)
@pytest.mark.parametrize("embedder", [None, pytest.param(VECTORS, marks=needs_vectors)])
def test_words_find_what_they_name(request_: str, first: str, embedder: Embedder | None) -> None:
    assert found(request_, embedder=embedder)[0] == first


@needs_vectors
def test_vectors_find_what_shares_no_word_with_the_request() -> None:
    assert found("is it going to rain tomorrow", embedder=VECTORS)[0] == "get_weather"


@pytest.mark.parametrize(
    "name", ["get_weather", "tool:get_weather", "x:get_weather", "GET_WEATHER"]
)
def test_an_exact_name_wins_over_everything(name: str) -> None:
    rivals = tuple(tool(f"weather_{at}", "get weather get weather") for at in range(8))
    assert found(name, (*OFFICE, *rivals))[0] == "get_weather"


def test_a_name_inside_a_request_wins_too() -> None:
    assert found("mail me what translate_text says about mail")[0] == "translate_text"


@pytest.mark.parametrize("request_", ["", "   ", "asdf qwer zxcv", "xkqj", "😀😀", "!!!", "of the"])
@pytest.mark.parametrize("embedder", [None, pytest.param(VECTORS, marks=needs_vectors)])
def test_gibberish_finds_nothing(request_: str, embedder: Embedder | None) -> None:
    assert found(request_, embedder=embedder) == []


@needs_vectors
def test_each_step_of_a_long_request_finds_its_tool() -> None:
    request = "Tell me the weather in Rome, then translate the text and create an invoice for it"
    assert {"get_weather", "translate_text", "create_invoice"} <= set(
        found(request, embedder=VECTORS)
    )


def test_a_request_that_worked_before_finds_its_tool_again() -> None:
    lessons = Lessons({"tool:read_mail": ["anything from the boss"]})
    assert found("is there something from my boss") == []
    assert found("is there something from my boss", lessons=lessons) == ["read_mail"]


def test_a_tool_that_always_failed_falls_behind_its_twin() -> None:
    twins = (tool("one", "print a document"), tool("two", "print a document"))
    assert found("print a document", twins) == ["one", "two"]
    assert found("print a document", twins, lessons=Lessons(penalties={"tool:one": 1.0})) == [
        "two",
        "one",
    ]


def test_equal_ones_come_in_the_order_of_their_ids() -> None:
    same = tuple(tool(name, "print a document") for name in ("c", "a", "b"))
    assert found("print a document", (*same, tool("z", "other"))) == ["a", "b", "c"]


def _view(*descriptors: Descriptor) -> View:
    index = index_of(descriptors)
    return View(index, np.ones(len(index), np.bool_))


def ranking(view: View, fused: Sequence[float]) -> Ranking:
    """A ranking with these scores, of a request without words."""
    scores = np.array(fused, np.float32)
    return Ranking(view, scores, Evidence((), [scores], [None], (1.0,)), ())


def test_those_that_belong_together_lift_each_other_but_never_above_one() -> None:
    view = _view(tool("a", tags=("x", "y")), tool("b", tags=("x", "y")), tool("c"))
    hits = ordered(ranking(view, [0.5, 0.95, 0.52]), [1, 2, 0], [1.0, 0.5, 0.5])
    assert [hit.row for hit in hits] == [1, 0, 2]
    assert hits[0].relevance == 1.0
    assert hits[1].relevance == pytest.approx(0.5 + 0.5 * 0.5 * 0.15 * 0.6)
    assert hits[2].relevance == 0.5


def test_no_hit_is_told_to_be_likelier_than_one_before_it() -> None:
    view = _view(tool("a"), tool("b"))
    hits = ordered(ranking(view, [0.9, 0.5]), [0, 1], [0.3, 0.6])
    assert [(hit.row, hit.relevance) for hit in hits] == [(0, 0.3), (1, 0.3)]


def test_a_lone_match_shows_its_dependency() -> None:
    view = _view(skill("github", "issues", required_tools=("run",)), tool("run", "a command"))
    row = view.index.rows["skill:github"]
    company = with_company([Hit(row, 0.8)], view, view.allowed, 3)
    assert [(view.index.descriptors[hit.row].id, hit.pulled_in_by) for hit in company] == [
        ("skill:github", None),
        ("tool:run", row),
    ]
    assert company[1].relevance == pytest.approx(0.8 * 0.15)


def test_company_passes_the_filters_as_well_and_is_bounded() -> None:
    many = [tool(f"t{at}") for at in range(6)]
    needy = skill("s", required_tools=tuple(each.name for each in many))
    view = _view(needy, *many)
    hit = Hit(view.index.rows["skill:s"], 1.0)
    assert len(with_company([hit], view, view.allowed, 3)) == 4
    assert with_company([hit], view, np.zeros_like(view.allowed), 3) == [hit]


def test_a_request_of_one_endless_word_is_looked_at_once() -> None:
    assert found("a" * 4_000 + "_") == []
    assert found(" ".join(["a_b"] * 2_000)) == []


def test_somebody_elses_id_hides_no_name_of_ones_own() -> None:
    index = index_of([skill("x", "other words"), tool("own", "words", display_name="skill:x")])
    mine = np.array([descriptor.name == "own" for descriptor in index.descriptors])
    view = View(index, mine)
    rows = best(Ranker(None).rank(view, "skill:x", view.allowed).fused, view, 5, 0.3)
    assert [index.descriptors[row].name for row in rows] == ["own"]


class Falling:
    """A model that answers when the index is made, and never again."""

    name, dimensions, is_slow = "falling", 2, True

    def __init__(self) -> None:
        self.asked = 0

    def embed(self, texts: Sequence[str]) -> Floats:
        self.asked += 1
        if self.asked > 1:
            raise EmbeddingError("gone")
        return np.ones((len(texts), 2), np.float32)

    def reads(self, words: Sequence[str]) -> bool:
        return bool(words)


def test_a_question_does_not_wait_again_for_a_model_that_failed_beforehand() -> None:
    model = Falling()
    index = Indexer(model, VectorCache()).build(OFFICE)
    view = View(index, np.ones(len(index), np.bool_))
    ranker = Ranker(model)
    ranker.embed("weather. And then send a mail")
    scores = ranker.rank(view, "weather. And then send a mail", view.allowed).fused
    assert model.asked == 2
    assert best(scores, view, 1, 0.3)


TEXTS = [
    "Telegram. Sending messages by a bot. telegram, bot, chat",
    "Billing. How invoices are paid. invoice, payment, cost",
    "Deploys. Rolling out to production. deploy, rollout, kubernetes",
]


def ranker(*, words_only: bool = False) -> TextRanker:
    has_vectors = static_folder() is not None and not words_only
    return TextRanker(lambda: Indexer(StaticVectors() if has_vectors else None, VectorCache()))


def test_the_card_that_a_message_means_comes_first() -> None:
    for words_only in (True, False):
        rank = ranker(words_only=words_only)
        for message, wanted in (("pay the invoice", 1), ("use the telegram bot", 0)):
            scores = rank([message], TEXTS)
            assert scores.index(max(scores)) == wanted
            assert scores[wanted] > 0.6


def test_each_set_of_cards_is_ranked_by_itself_and_in_its_own_order() -> None:
    rank = ranker()
    forward = rank(["pay the invoice"], TEXTS)
    assert rank(["pay the invoice"], TEXTS[::-1]) == pytest.approx(forward[::-1], abs=1e-6)
    assert rank(["pay the invoice"], []) == []
    assert rank(["pay the invoice"], TEXTS) == forward


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=4))
def test_a_score_is_always_between_0_and_1(messages: list[str], texts: list[str]) -> None:
    scores = WORDS(messages, texts)
    assert len(scores) == len(texts)
    assert all(0 <= score <= 1 for score in scores)


WORDS = ranker(words_only=True)


def test_a_request_of_many_steps_is_cut_into_them() -> None:
    request = "Find the newest invoice and send it to the customer. Then translate the reply!"
    assert clauses(request) == [
        "Find the newest invoice",
        "send it to the customer.",
        "translate the reply!",
    ]


def test_a_request_of_one_step_is_not_cut() -> None:
    assert clauses("Send example.com a mail") == []


def test_clauses_are_bounded() -> None:
    assert len(clauses("send the mail now. " * 50)) == MAX_CLAUSES


def test_only_the_beginning_of_a_huge_request_is_looked_at() -> None:
    assert len(shortened("word " * 50_000)) <= 4_000
