"""The ranker of discovery scores cards: by meaning, from 0 to 1, each set of cards by itself."""

from hypothesis import given
from hypothesis import strategies as st

from remit.features.cards.ranker import CardRanker
from remit.features.discovery.embedding import StaticVectors, static_folder
from remit.features.discovery.index import Indexer
from remit.features.discovery.vectors import VectorCache

TEXTS = [
    "Telegram. Sending messages by a bot. telegram, bot, chat",
    "Billing. How invoices are paid. invoice, payment, cost",
    "Deploys. Rolling out to production. deploy, rollout, kubernetes",
]


def ranker(*, words_only: bool = False) -> CardRanker:
    has_vectors = static_folder() is not None and not words_only
    return CardRanker(lambda: Indexer(StaticVectors() if has_vectors else None, VectorCache()))


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
    assert rank(["pay the invoice"], TEXTS[::-1]) == forward[::-1]
    assert rank(["pay the invoice"], []) == []
    assert rank(["pay the invoice"], TEXTS) == forward


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=4))
def test_a_score_is_always_between_0_and_1(messages: list[str], texts: list[str]) -> None:
    scores = WORDS(messages, texts)
    assert len(scores) == len(texts)
    assert all(0 <= score <= 1 for score in scores)


WORDS = ranker(words_only=True)
