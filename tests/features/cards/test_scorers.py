"""How relevant a card is: the documented formula, words with inflections, rankers, plug-ins."""

import unicodedata
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.cards.card import Card, Triggers
from remit.features.cards.scorers import (
    CardScorer,
    KeywordDensity,
    Semantic,
    assigned,
    checked,
    load_scorers,
)
from remit.features.cards.words import MAX_MESSAGE, Score, Window, WordsScorer
from remit.text import words as text_words

BUILT_IN_NAMES = {"words", "keyword_density"}
ECONOMY = ("cost", "tokens", "model", "routing", "budget")


def card(*keywords: str, priority: int = 50) -> Card:
    triggers = Triggers(keywords=keywords)
    return Card(id="a", name="A", description="B", text="", triggers=triggers, priority=priority)


def density(keywords: Sequence[str], *messages: str) -> float:
    return KeywordDensity().score(card(*keywords), Window(messages)).value


def words(keywords: Sequence[str], *messages: str) -> float:
    return WordsScorer().score(card(*keywords), Window(messages)).value


# ---- keyword_density ----


def test_the_documented_formula() -> None:
    assert density(ECONOMY, "The COST of tokens", "token cost") == pytest.approx(
        0.7 * 2 / 5 + 0.3 * 3 / 100
    )


def test_the_documented_formula_finds_parts_of_words_and_saturates() -> None:
    assert density(["cost"], "costume " * 250) == pytest.approx(1.0)
    assert density(["cost", "x-ray"], "accosted") == pytest.approx(0.7 / 2 + 0.3 / 100)


def test_the_documented_formula_looks_over_the_border_of_messages() -> None:
    assert density(["token cost"], "one token", "cost") > 0


@pytest.mark.parametrize("scorer", [KeywordDensity(), WordsScorer(), Semantic(lambda _m, _t: [])])
def test_without_messages_the_priority_counts(scorer: CardScorer) -> None:
    assert scorer.score(card("x", priority=73), Window([])).value == pytest.approx(0.73)


@pytest.mark.parametrize("scorer", [KeywordDensity(), WordsScorer()])
@pytest.mark.parametrize("messages", [[""], ["nothing of the kind"], ["", "\0\ud800"]])
def test_without_a_match_nothing_counts(scorer: CardScorer, messages: list[str]) -> None:
    assert scorer.score(card("deploy", priority=100), Window(messages)) == Score(value=0.0)


@given(
    st.lists(st.text(alphabet="abc xyz", min_size=1, max_size=5), min_size=1, unique=True),
    st.lists(st.text(alphabet="abc xyz"), min_size=1, max_size=5),
)
def test_the_formula_holds_for_any_words(keywords: list[str], messages: list[str]) -> None:
    text = " ".join(messages)
    matched = [word for word in keywords if word in text]
    found = sum(text.count(word) for word in keywords)
    expected = 0.7 * len(matched) / len(keywords) + 0.3 * min(found / 100, 1) if matched else 0
    assert density(keywords, *messages) == pytest.approx(expected)


# ---- words ----


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        pytest.param(ECONOMY, "How many tokens does a run cost?", id="two-words"),
        pytest.param(["deploy"], "deploy it", id="one-word-that-says-it-all"),
        pytest.param(["deploy"], "it was deployed", id="past"),
        pytest.param(["schedule"], "Scheduling fails", id="present-participle"),
        pytest.param(["policies"], "which policy?", id="plural-in-the-keyword"),
        pytest.param(["GitHub"], "open github", id="case"),
        pytest.param(["c++"], "compile this C++ file", id="signs-that-are-part-of-a-word"),
        pytest.param(["reset password"], "please reset your password", id="a-word-between"),
        pytest.param(["password reset"], "how do I reset a password?", id="the-other-way-round"),
        pytest.param(["on call"], "who is on-call?", id="a-filler-that-belongs-to-it"),
        pytest.param(["schedule a call"], "schedule a quick call", id="a-filler-that-does-not"),
        pytest.param(["rollback"], "now roll back!", id="written-as-two-words"),
        pytest.param(["roll back"], "a rollback, please", id="written-as-one-word"),
        pytest.param(["报销"], "这张发票可以报销吗", id="chinese-without-borders"),
        pytest.param(["報告書"], "報告書を書いてください", id="japanese"),
        pytest.param(["배포"], "배포해 주세요", id="korean"),
        pytest.param(["تأشيرة"], "أين التأشيرة؟", id="arabic-article"),
        pytest.param(["رحلة"], "والرحلات", id="arabic-plural-with-and"),
        pytest.param(["سَفَر"], "سفر", id="arabic-vowel-signs"),
        pytest.param(["पासवर्ड"], "मेरा पासवर्ड", id="hindi"),
        pytest.param(["größe"], "welche Größe?", id="umlauts"),
        pytest.param(["café"], "the cafe\u0301", id="accents-written-apart"),
        pytest.param(["\uff44eploy"], "deploy", id="full-width-letters"),
    ],
)
def test_a_message_that_is_clearly_about_a_card_reaches_the_usual_threshold(
    keywords: Sequence[str], message: str
) -> None:
    assert words(keywords, message) >= 0.6


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        pytest.param(["cost"], "costume and accosted", id="parts-of-words"),
        pytest.param(["on call"], "call me on Monday", id="a-fixed-phrase-torn-apart"),
        pytest.param(["model routing"], "a model. " + "far away " * 5 + "routing", id="too-far"),
        pytest.param(["c++"], "c is a letter", id="not-without-its-signs"),
        pytest.param(["(a+)+$"], "aaaaaaaaaaaaaaaaaaaaaaaa!", id="no-pattern"),
        pytest.param(["报销"], "报纸的销量", id="signs-that-do-not-touch"),
        pytest.param(["سفر"], "أسفل", id="another-arabic-word"),
    ],
)
def test_words_that_only_look_alike_count_nothing(keywords: Sequence[str], message: str) -> None:
    assert words(keywords, message) == 0


def test_a_phrase_does_not_reach_from_one_message_into_the_next() -> None:
    assert words(["model routing"], "the model", "routing") == 0


def test_one_word_in_a_long_chatter_is_not_enough() -> None:
    chatter = "We walked along the harbour and talked of the garden and old friends. " * 5
    assert 0 < words(ECONOMY, f"{chatter} It will cost another winter.") < 0.6
    assert words(ECONOMY, f"{chatter} What is the token cost, and which model has budget?") >= 0.6


def test_many_keywords_are_no_disadvantage() -> None:
    many = [*ECONOMY, *(f"synonym{number}" for number in range(50))]
    assert words(many, "deploy cost") == words(ECONOMY, "deploy cost")


def test_what_was_said_last_counts_most() -> None:
    assert words(["deploy"], "hi", "deploy it") > words(["deploy"], "deploy it", "hi")


def test_a_score_tells_word_by_word_where_it_comes_from() -> None:
    score = WordsScorer().score(
        card(*ECONOMY, "model routing"), Window(["routing models cost cost"])
    )
    assert [(one.keyword, one.count, round(one.weight, 2)) for one in score.matches] == [
        ("cost", 2, 0.98),
        ("model", 1, 0.85),
        ("routing", 1, 0.85),
        ("model routing", 1, 1.36),
    ]


def test_rare_words_count_more_than_common_ones_whatever_other_cards_there_are() -> None:
    said = "my zeppelin is late today and nobody here can say why that is"
    assert words(["late"], said) < words(["calendar"], said.replace("late", "calendar"))
    assert words(["calendar"], said.replace("late", "calendar")) < words(["zeppelin"], said)


def test_a_phrase_adds_only_what_it_weighs_more_than_its_words() -> None:
    said = "send it by the relay of our mail house, and then some more words of no weight"
    apart, both = words(["relay", "mail"], said), words(["relay", "mail", "mail relay"], said)
    assert apart == both < words(["relay", "mail", "house"], said)


@pytest.mark.parametrize(
    ("keyword", "message", "is_found"),
    [
        pytest.param("state:set", "why is 'state:set' slow?", True, id="in-quotes"),
        pytest.param("state:set", "call state:set.", True, id="at-the-end"),
        pytest.param("state:set", "State:Set", True, id="any-case"),
        pytest.param("state:set", "the state set a limit", False, id="not-as-words"),
        pytest.param("state:set", "mystate:set:x state:setting", False, id="not-as-parts"),
        pytest.param("state:", "it was state:get", True, id="what-a-name-begins-with"),
        pytest.param("state:", "the state: California", False, id="not-before-a-blank"),
        pytest.param("no_grant", "denied (no_grant)", True, id="underscore"),
        pytest.param("no_grant", "there was no grant", True, id="underscore-as-people-say-it"),
    ],
)
def test_names_are_looked_for_letter_by_letter(
    keyword: str,
    message: str,
    is_found: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert (words([keyword], message) > 0) == is_found


def test_many_names_take_time_with_their_number_only() -> None:
    with_names = WordsScorer().score(
        card("a:b"), Window(["a" * 30_000, "a:b " * 8_000, "x_" * 9_000])
    )
    assert with_names.signals == 2


def in_context(message: str, unless: tuple[str, ...] = ()) -> float:
    triggers = Triggers(keywords=("message", "other agents"), context=("agent",), unless=unless)
    given_card = msgspec.structs.replace(card(), triggers=triggers)
    return WordsScorer().score(given_card, Window([message])).value


def test_with_context_a_keyword_counts_beside_it_and_context_alone_counts_nothing() -> None:
    assert in_context("a message to the agent") >= 0.6
    assert in_context("a message to the mayor") < 0.3
    assert in_context("the agent is here") == 0
    assert in_context("what do the other agents do?") >= 0.6  # a phrase that holds its context


def test_words_of_an_unless_are_no_context() -> None:
    said = "the estate agent wrote a message"
    assert in_context(said) >= 0.6
    assert in_context(said, ("estate agent",)) < 0.3
    assert in_context("the agent wrote a message", ("estate agent",)) >= 0.6


@given(st.lists(st.sampled_from(["deploy", "agent", "estate agent", "the", "a:b"]), max_size=12))
def test_more_context_never_lowers_a_score_and_an_unless_never_raises_it(said: list[str]) -> None:
    def value(**more: tuple[str, ...]) -> float:
        triggers = Triggers(keywords=("deploy", "a:b"), **more)  # type: ignore[arg-type]
        given_card = msgspec.structs.replace(card(), triggers=triggers)
        return WordsScorer().score(given_card, Window([" ".join(said)])).value

    small = value(context=("agent",))
    assert small <= value(context=("agent", "the estate")) + 1e-9
    assert value(context=("agent",), unless=("estate agent",)) <= small + 1e-9


@given(
    st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5),
    st.lists(st.text(max_size=200), max_size=5),
)
def test_any_text_gives_a_score_from_0_to_1(keywords: list[str], messages: list[str]) -> None:
    for scorer in (WordsScorer(), KeywordDensity()):
        checked(scorer.score(card(*keywords), Window(messages)))


@given(st.lists(st.sampled_from(["deploy", "the", "cost", "of", "tokens"]), max_size=30))
def test_another_match_never_lowers_a_score(said: list[str]) -> None:
    text = " ".join(said)
    assert words(["deploy"], text) <= words(["deploy", "tokens", "cost"], text) + 1e-9


def test_a_long_run_of_combining_marks_is_normalised_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Normalising takes time with the square of such a run: seconds for a message of them."""
    pieces: list[int] = []

    def normalize(form: Literal["NFKC"], text: str) -> str:
        pieces.append(len(text))
        return unicodedata.normalize(form, text)

    monkeypatch.setattr(text_words, "unicodedata", SimpleNamespace(normalize=normalize))
    assert words(["deploy"], "a" + "\u0301\u0316" * 5_000 + " deploy") > 0
    assert max(pieces) <= 101


def test_of_a_very_long_message_the_end_is_looked_at() -> None:
    far = "deploy " + "x" * MAX_MESSAGE
    assert words(["deploy"], far) == 0
    assert words(["deploy"], "x " * MAX_MESSAGE + " deploy") > 0


def test_the_work_grows_with_the_length_of_the_messages_and_not_faster() -> None:
    """Counted in words that are looked at, not in seconds."""

    class Counting(list[int]):
        looked = 0

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            Counting.looked += len(found) if isinstance(found, list) else 1
            return found

    def work(length: int) -> int:
        window = Window(["model cost routing " * length], longest=10**9)
        index = window.words
        index.places = {word: Counting(places) for word, places in index.places.items()}
        Counting.looked = 0
        for number in range(50):
            WordsScorer().score(card("model routing", "cost model", f"word{number}"), window)
        return Counting.looked

    assert 0 < work(20_000) == work(2_000)  # after the one pass, no more work at all


# ---- ranker, plug-ins, experiments ----


def test_the_semantic_scorer_asks_once_for_all_cards_and_shows_no_card_text() -> None:
    asked: list[tuple[Sequence[str], Sequence[str]]] = []

    def rank(messages: Sequence[str], texts: Sequence[str]) -> Sequence[float]:
        asked.append((messages, texts))
        return [0.5] * len(texts)

    scorer = load_scorers(rank).by_name["semantic"]
    assert isinstance(scorer, Semantic)
    scores = scorer.score_all([card("x"), card("y")], Window(["a", "b"]))
    assert [one.value for one in scores] == [0.5, 0.5]
    assert asked == [(("a", "b"), ["A. B. x", "A. B. y"])]


class Plugin:
    """What a package may offer."""

    name = "mine"

    def score(self, card: Card, window: Window) -> Score:
        return Score(value=0.9)


BROKEN = object()
HERE = "tests.features.cards.test_scorers"


def test_a_package_offers_a_scorer_and_a_broken_one_is_told_and_left_out() -> None:
    points = [
        EntryPoint(name, value, "remit.card_scorers")
        for name, value in [
            ("mine", f"{HERE}:Plugin"),
            ("no_module", "no.such.module:X"),
            ("no_scorer", f"{HERE}:BROKEN"),
            ("semantic", f"{HERE}:Plugin"),
            ("words", f"{HERE}:Plugin"),
        ]
    ]
    found = load_scorers(offered=points)
    assert set(found.by_name) == BUILT_IN_NAMES | {"mine"}
    assert isinstance(found.by_name["words"], WordsScorer)
    assert [one.code for one in found.problems] == ["bad_scorer"] * 4
    assert "no_module" in found.problems[0].message


def test_installed_packages_are_asked() -> None:
    assert set(load_scorers().by_name) >= BUILT_IN_NAMES


@given(st.text(), st.floats(0, 1))
def test_a_session_always_gets_the_same_scorer(session: str, share: float) -> None:
    assert assigned(session, "a", "b", share) == assigned(session, "a", "b", share)
    assert assigned(session, "a", "b", 0) == "a"
    assert assigned(session, "a", "b", 1) == "b"


def test_sessions_are_shared_out_as_asked() -> None:
    drawn = [assigned(f"s{number}", "a", "b", 0.3) for number in range(2_000)]
    assert 500 < drawn.count("b") < 700
