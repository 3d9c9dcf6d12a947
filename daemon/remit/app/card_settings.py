"""What the settings say about cards, for the daemon and for commands without one."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from remit.config.settings.table import Settings
from remit.features.cards.config import AwarenessConfig
from remit.features.cards.library import CardRoot, card_roots
from remit.features.cards.scorers import Rank, Scorers, load_scorers


def searched_for_cards(settings: Settings) -> tuple[CardRoot, ...]:
    """The directories of cards, strongest first."""
    return card_roots(
        os.environ, Path.cwd(), settings.card_dirs, workspace=settings.workspace_cards
    )


def awareness_config(settings: Settings) -> AwarenessConfig:
    """What the settings say, in the words of the runtime."""
    return AwarenessConfig(
        mode=settings.awareness,
        window=settings.awareness_window,
        tokens=settings.awareness_tokens,
        most_tokens=settings.awareness_most_tokens,
        scorer=settings.awareness_scorer,
        second_scorer=settings.awareness_second_scorer,
        second_share=settings.awareness_second_share,
        force=frozenset(settings.awareness_force),
        exclude=frozenset(settings.awareness_exclude),
        thresholds=_numbers(settings.awareness_thresholds),
        rollout=_numbers(settings.awareness_rollout),
        kill_share=settings.awareness_kill_share,
        position=settings.awareness_position,
    )


def _numbers(pairs: Iterable[str]) -> dict[str, float]:
    parted = (pair.partition("=") for pair in pairs)
    return {name: float(number) for name, _, number in parted}


def configured_scorers(settings: Settings) -> Scorers:
    """Every scorer that can be chosen; the ranker of discovery is made when it is first asked."""
    ranker: Rank | None = None

    def rank(messages: Sequence[str], texts: Sequence[str]) -> Sequence[float]:
        nonlocal ranker
        if ranker is None:
            ranker = _make_ranker(settings)
        return ranker(messages, texts)

    return load_scorers(rank)


def _make_ranker(settings: Settings) -> Rank:
    from remit.app.search_engine import make_embedder  # noqa: PLC0415 - numpy and the vectors
    from remit.features.cards.ranker import CardRanker  # noqa: PLC0415 - the same
    from remit.features.discovery.index import Indexer  # noqa: PLC0415 - the same
    from remit.features.discovery.vectors import VectorCache  # noqa: PLC0415 - the same

    return CardRanker(lambda: Indexer(make_embedder(settings), VectorCache()))


def token_count(settings: Settings) -> Callable[[str], int]:
    """The configured counter, loaded when something is first counted."""
    counting: Callable[[str], int] | None = None

    def count(text: str) -> int:
        nonlocal counting
        if counting is None:
            from remit.features.discovery.counting import make_counter  # noqa: PLC0415 - a tokenizer

            counting = make_counter(settings.token_counter).count
        return counting(text)

    return count
