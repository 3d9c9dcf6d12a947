"""Which cards a conversation is given, and which never."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.cards.card_files import ready

from remit.features.cards.card import Card, Triggers
from remit.features.cards.ready_card import ReadyCard
from remit.features.cards.scorers import CardScorer, KeywordDensity, Semantic
from remit.features.cards.select import Selection, SelectOptions, Situation, budget_for, select
from remit.features.cards.words import Score, Window, WordsScorer

ABOUT = ["please deploy it"]
WORDS = WordsScorer()


def chosen(
    cards: Sequence[ReadyCard],
    messages: Sequence[str] = ABOUT,
    situation: Situation = Situation(),  # noqa: B008 - frozen
    *,
    scorer: CardScorer = WORDS,
    budget: int | None = None,
    overhead: int = 0,
    **options: object,
) -> Selection:
    given_options = SelectOptions(**options)  # type: ignore[arg-type]
    found = select(
        cards, messages, situation, scorer, given_options, budget=budget, overhead=overhead
    )
    msgspec.json.encode(found)
    return found


def ids(found: Selection) -> list[str]:
    return [one.id for one in found.injected]


def reasons(found: Selection) -> dict[str, str]:
    return {one.id: one.reason for one in found.skipped}


def triggered(**triggers: object) -> Triggers:
    return Triggers(keywords=("deploy",), **triggers)  # type: ignore[arg-type]


# ---- filters ----


@pytest.mark.parametrize(
    ("triggers", "reason"),
    [
        (triggered(session_types=("main",)), "session_type"),
        (triggered(user_tier=("premium",)), "user_tier"),
        (triggered(environment=("production",)), "environment"),
        (triggered(time_of_day=("22:00-06:00",)), "time_of_day"),
    ],
)
def test_a_card_is_given_only_where_its_triggers_say(triggers: Triggers, reason: str) -> None:
    fitting = Situation(
        session_type="main", user_tier="premium", environment="production", minute_of_day=23 * 60
    )
    other = Situation(session_type="isolated", minute_of_day=12 * 60)
    assert ids(chosen([ready(triggers=triggers)], situation=fitting)) == ["a"]
    found = chosen([ready(triggers=triggers)], situation=other)
    assert (ids(found), reasons(found)) == ([], {"a": reason})


def test_excluded_and_quarantined_cards_are_not_given_and_told() -> None:
    found = chosen(
        [ready("x"), ready("q", quarantined=True), ready("a")],
        exclude=frozenset({"x"}),
        force_include=frozenset({"x", "q"}),
    )
    assert (ids(found), reasons(found)) == (["a"], {"q": "quarantined", "x": "excluded"})


def test_a_card_over_its_own_budget_is_not_given() -> None:
    found = chosen([ready(tokens=30, token_budget=20)], force_include=frozenset({"a"}))
    assert reasons(found) == {"a": "over_own_budget"}


def test_nothing_is_given_when_it_is_switched_off() -> None:
    assert chosen([ready()], enabled=False) == Selection(budget=1_500)


def test_a_card_bound_to_capabilities_exists_only_for_holders_of_one() -> None:
    cards = [ready("bound", capabilities=("mail", "post")), ready("free")]
    holder = Situation(capabilities=frozenset({"post"}))
    assert ids(chosen(cards, situation=holder)) == ["bound", "free"]
    bound = frozenset({"bound"})
    for found in (
        chosen(cards),
        chosen(cards, force_include=bound),
        chosen(cards, exclude=bound),
    ):
        assert (ids(found), reasons(found)) == (["free"], {})


# ---- threshold ----


def test_the_threshold_is_the_cards_own_unless_the_configuration_says_otherwise() -> None:
    cards = [ready("a"), ready("b", triggers=triggered(confidence_threshold=0.9))]
    assert ids(chosen(cards)) == ["a"]
    assert ids(chosen(cards, threshold=0.95)) == []
    assert ids(chosen(cards, threshold=0.95, thresholds={"b": 0.5})) == ["b"]


def test_what_is_not_relevant_enough_is_told_with_its_score_and_words() -> None:
    found = chosen(
        [ready("a", triggers=triggered(confidence_threshold=0.99)), ready("b", keywords=("x1",))]
    )
    low, none = found.skipped
    assert (low.reason, none.reason) == ("below_threshold", "no_match")
    assert 0 < low.relevance < low.threshold == 0.99
    assert [match.keyword for match in low.matches] == ["deploy"]


def test_a_forced_card_needs_no_match_and_comes_first_but_keeps_to_the_budget() -> None:
    cards = [
        ready("a", priority=100),
        ready("f", keywords=("nothing",), priority=0, triggers=triggered(session_types=("x",))),
    ]
    forced = frozenset({"f"})
    found = chosen(cards, force_include=forced)
    assert ids(found) == ["f", "a"]
    assert found.injected[0].forced
    assert ids(chosen(cards, force_include=forced, budget=5)) == []


def test_without_messages_the_priority_decides() -> None:
    cards = [ready("high", priority=60), ready("low", priority=59)]
    assert ids(chosen(cards, [])) == ["high"]


def test_below_priority_50_two_signals_that_share_no_word_are_asked_for() -> None:
    one_word = ready("a", priority=49, keywords=("deploy", "please deploy", "deploy it"))
    found = chosen([one_word, ready("b", priority=50)])
    assert (ids(found), reasons(found)) == (["b"], {"a": "one_signal"})
    assert ids(chosen([one_word], force_include=frozenset({"a"}))) == ["a"]
    assert ids(chosen([ready(priority=0, keywords=("deploy", "staging"))], ["deploy to staging"]))
    assert ids(chosen([ready(priority=0, keywords=("agent:spawn",))], ["use agent:spawn"])) == ["a"]
    beside = triggered(context=("staging",))
    assert ids(chosen([ready(priority=0, triggers=beside)], ["deploy to staging"])) == ["a"]


def test_scorers_that_tell_no_signals_are_asked_for_none() -> None:
    found = chosen([ready(priority=10)], scorer=KeywordDensity())
    assert ids(found) == ["a"]


@given(st.integers(0, 100), st.lists(st.sampled_from(["deploy", "cost", "hm", "the"]), max_size=6))
def test_no_card_below_priority_50_is_given_for_one_word(priority: int, said: list[str]) -> None:
    card = ready(priority=priority, keywords=("deploy", "cost", "deploy cost"))
    found = chosen([card], [" ".join(said)])
    assert not ids(found) or priority >= 50 or {"deploy", "cost"} <= set(said)


# ---- window ----


def test_only_the_last_messages_are_looked_at() -> None:
    messages = ["please deploy it", *["hm"] * 4]
    assert ids(chosen([ready()], messages, threshold=0.1)) == ["a"]
    assert ids(chosen([ready()], [*messages, "hm"], threshold=0.1)) == []
    assert ids(chosen([ready()], [*messages, "hm"], threshold=0.1, window=6)) == ["a"]


def test_messages_of_a_megabyte_are_taken() -> None:
    long = "chatter and more " * 60_000
    assert ids(chosen([ready()], [long] * 4 + [long + " deploy deploy"], threshold=0.1)) == ["a"]


# ---- order and budget ----


def test_order_is_priority_then_relevance_then_id() -> None:
    cards = [
        ready("d", keywords=("deploy",)),
        ready("c", keywords=("deploy",)),
        ready("z", keywords=("deploy", "staging")),
        ready("a", keywords=("deploy", "staging"), priority=10),
    ]
    found = chosen(cards, ["deploy to staging"])
    assert ids(found) == ["z", "c", "d", "a"]


def test_a_card_that_finds_no_room_does_not_stop_those_behind_it() -> None:
    cards = [
        ready("a", tokens=60, priority=90),
        ready("b", tokens=1_900, priority=80),
        ready("c", tokens=40, priority=70),
        ready("d", tokens=1, priority=60),
    ]
    found = chosen(cards, budget=100)
    assert (ids(found), found.total_tokens, found.truncated) == (["a", "c"], 100, True)
    assert reasons(found) == {"b": "over_budget", "d": "over_budget"}


def test_zero_budget_gives_nothing_and_says_so() -> None:
    found = chosen([ready()], budget=0)
    assert (ids(found), found.total_tokens, found.truncated) == ([], 0, True)
    assert reasons(found) == {"a": "over_budget"}


def test_two_hundred_cards_that_match_at_once_stay_inside_the_budget() -> None:
    found = chosen([ready(f"c{number:03}", tokens=40) for number in range(200)])
    assert (len(found.injected), found.total_tokens, len(found.skipped)) == (37, 1_480, 163)
    assert set(reasons(found).values()) == {"over_budget"}


def test_what_stands_around_the_cards_is_paid_for_only_when_there_are_any() -> None:
    assert chosen([ready(tokens=60)], budget=100, overhead=40).total_tokens == 100
    assert ids(chosen([ready(tokens=61)], budget=100, overhead=40)) == []
    assert chosen([ready()], ["nothing"], overhead=40).total_tokens == 0


@pytest.mark.parametrize(
    ("length", "budget"), [(0, 1_000), (5, 1_000), (15, 1_500), (25, 2_000), (10_000, 2_000)]
)
def test_the_budget_grows_with_the_conversation(length: int, budget: int) -> None:
    options = SelectOptions(budget=1_000, most=2_000, grown_at=25)
    assert budget_for(options, length) == budget
    found = select([ready()], ["deploy it"] * length, Situation(), WORDS, options)
    assert found.budget == budget


def test_without_a_larger_bound_the_budget_stays() -> None:
    assert budget_for(SelectOptions(most=10), 1_000) == 1_500


# ---- scorers that fail ----


class Moody:
    """A scorer that fails for one card and lies about another."""

    name = "moody"

    def score(self, card: Card, window: Window) -> Score:
        if card.id == "raises":
            raise RuntimeError("no")
        return Score(value=float("nan") if card.id == "nan" else 1.0)


def test_a_scorer_that_fails_for_one_card_does_not_cost_the_others() -> None:
    found = chosen([ready("raises"), ready("nan"), ready("good")], scorer=Moody())
    assert ids(found) == ["good"]
    assert reasons(found) == {"nan": "scorer_failed", "raises": "scorer_failed"}


@pytest.mark.parametrize("answer", [[], [0.9], [0.9, 7.0], [0.9, float("nan")]])
def test_a_ranker_that_answers_nonsense_gives_no_card_but_forced_ones(answer: list[float]) -> None:
    cards = [ready("a"), ready("b")]
    scorer = Semantic(lambda _messages, _texts: answer)
    found = chosen(cards, scorer=scorer, force_include=frozenset({"b"}))
    assert (ids(found), reasons(found)) == (["b"], {"a": "scorer_failed"})


# ---- what holds for everything ----

CARDS = st.lists(
    st.builds(
        ready,
        st.from_regex(r"[a-z]{1,3}", fullmatch=True),
        tokens=st.integers(0, 2_000),
        keywords=st.just(("deploy", "cost")),
        priority=st.integers(0, 100),
        capabilities=st.sampled_from([(), ("x",), ("y",), ("x", "y")]),
        token_budget=st.integers(1, 2_000),
        quarantined=st.booleans(),
    ),
    max_size=20,
    unique_by=lambda one: one.card.id,
)
MESSAGES = st.lists(st.sampled_from(["deploy", "the cost", "hm", ""]), max_size=8)
HELD = st.frozensets(st.sampled_from(["x", "y", "z"]))
NAMES = st.frozensets(st.from_regex(r"[a-z]{1,3}", fullmatch=True), max_size=5)


@given(CARDS, MESSAGES, HELD, NAMES, st.integers(-5, 5_000), st.integers(0, 100))
def test_a_selection_never_breaks_its_promises(
    cards: list[ReadyCard],
    messages: list[str],
    held: frozenset[str],
    forced: frozenset[str],
    budget: int,
    overhead: int,
) -> None:
    situation = Situation(capabilities=held)
    for scorer in (WORDS, KeywordDensity()):
        found = chosen(
            cards,
            messages,
            situation,
            scorer=scorer,
            budget=budget,
            overhead=overhead,
            force_include=forced,
            threshold=0.1,
        )
        by_id = {one.card.id: one for one in cards}
        spent = sum(one.tokens for one in found.injected)
        assert found.total_tokens <= max(0, budget)
        assert found.total_tokens == (spent + overhead if found.injected else 0)
        for one in found.injected:
            given_card = by_id[one.id]
            assert not given_card.is_quarantined
            assert one.tokens <= given_card.card.token_budget
        named = set(ids(found)) | set(reasons(found))
        assert len(named) == len(found.injected) + len(found.skipped)
        assert named == {
            one.card.id
            for one in cards
            if not one.card.capabilities or held & set(one.card.capabilities)
        }


@given(CARDS, MESSAGES, st.randoms(use_true_random=False))
def test_the_order_of_the_library_does_not_matter(
    cards: list[ReadyCard], messages: list[str], random: object
) -> None:
    shuffled = list(cards)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert chosen(shuffled, messages, threshold=0.1) == chosen(cards, messages, threshold=0.1)
