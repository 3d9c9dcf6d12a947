"""The labelled conversations for cards, and what the default scorer makes of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from remit.features.cards.library import CardLibrary, CardRoot, CardSet
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
