"""The labelled conversations for cards, and what the default scorer makes of them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from remit.features.cards.library import BUILT_IN, CardLibrary, CardRoot, CardSet
from remit.features.cards.select import Situation, select
from remit.features.cards.words import Window, WordsScorer

DATA = Path(__file__).parents[2] / "tools" / "bench" / "data"


@pytest.fixture(scope="module")
def cards() -> CardSet:
    return CardLibrary([CardRoot(DATA / "cards", "operator")]).load()


@pytest.fixture(scope="module")
def conversations() -> list[dict[str, Any]]:
    lines = (DATA / "card_messages.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_labelled_set_is_large_varied_and_whole(
    cards: CardSet, conversations: list[dict[str, Any]]
) -> None:
    assert (cards.problems, cards.quarantined, len(cards.cards)) == ((), (), 15)
    assert len(conversations) >= 120
    assert {one["kind"] for one in conversations} == {
        "plain",
        "inflection",
        "near_miss",
        "language",
        "several",
        "chatter",
    }
    known = {one.card.id for one in cards.cards}
    assert {name for one in conversations for name in one["cards"]} == known


@pytest.mark.parametrize("held_apart", [False, True])
def test_the_default_scorer_finds_most_and_little_else_at_the_usual_threshold(
    cards: CardSet, conversations: list[dict[str, Any]], *, held_apart: bool
) -> None:
    right = wrong = missed = 0
    for number, one in enumerate(conversations):
        if (number % 3 == 2) != held_apart:
            continue
        window = Window(one["messages"])
        scores = {c.card.id: WordsScorer().score(c.card, window).value for c in cards.cards}
        got = {name for name, value in scores.items() if value >= 0.6}
        right += len(got & set(one["cards"]))
        wrong += len(got - set(one["cards"]))
        missed += len(set(one["cards"]) - got)
    assert right / (right + wrong) >= 0.85
    assert right / (right + missed) >= 0.95


# ---- the cards that come with remit ----


@pytest.fixture(scope="module")
def sets() -> list[dict[str, Any]]:
    names = ("built_in_messages.jsonl", "built_in_more.jsonl")
    lines = [line for name in names for line in (DATA / name).read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines]


def injected(messages: list[str]) -> set[str]:
    found = CardLibrary([CardRoot(BUILT_IN, "built_in")]).load().cards
    held = frozenset(name for one in found for name in one.card.capabilities)
    chosen = select(found, messages, Situation(capabilities=held), WordsScorer())
    return {one.id for one in chosen.injected}


def test_the_sixty_conversations_are_half_right_half_near_misses_in_two_halves(
    sets: list[dict[str, Any]],
) -> None:
    counts = Counter((one["half"], one["kind"]) for one in sets)
    for half in ("tuning", "held_apart"):
        assert (counts[half, "right"], counts[half, "near_miss"]) == (15, 15)
    assert all(bool(one["cards"]) == (one["kind"] == "right") for one in sets)


@pytest.mark.parametrize("half", ["tuning", "held_apart", "while_tuning"])
def test_nine_of_ten_cards_that_come_with_remit_are_right_and_nine_of_ten_are_found(
    sets: list[dict[str, Any]], half: str
) -> None:
    right = wrong = missed = 0
    for one in sets:
        if one["half"] == half:
            got, wanted = injected(one["messages"]), set(one["cards"])
            right += len(got & wanted)
            wrong += len(got - wanted)
            missed += len(wanted - got)
    assert right / (right + wrong) >= 0.9
    assert right / (right + missed) >= 0.9


@pytest.mark.parametrize(
    ("message", "card"),
    [
        ("kids play in the sandbox", ""),
        ("I can't remember his name", ""),
        ("visa was refused", ""),
        ("agent 'bob' may not use 'state:set' (no_grant). What now?", "remit-permissions"),
        ("start three helpers in parallel", "remit-helpers"),
    ],
)
def test_one_common_word_calls_for_nothing_and_the_own_subject_does(
    message: str, card: str
) -> None:
    assert injected([message]) == ({card} if card else set())
