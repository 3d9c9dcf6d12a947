"""Cards in a daemon: their services, their folders, and what is counted."""

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from remit.config.settings.table import Settings
from remit.features.cards.chooser import CardChooser
from remit.features.cards.config import AwarenessConfig
from remit.features.cards.library import CardLibrary, CardRoot, card_roots
from remit.features.cards.library_cache import CardShelf
from remit.features.cards.memory import AwarenessMemory
from remit.features.cards.reviews import CardReviews
from remit.features.cards.scorers import Rank, Scorers, load_scorers
from remit.features.cards.service import Awareness
from remit.kernel.dispatch.kernel import Kernel, Setup, Startup
from remit.kernel.reload.full_reload import Difference, Reading, ReloadPart
from remit.kernel.reload.watch import watch_directories
from remit.model.principal import Cause


class CardOptions(msgspec.Struct, frozen=True):
    """How cards are configured; nothing is loaded before somebody asks."""

    make_library: Callable[[], CardLibrary]
    make_scorers: Callable[[], Scorers]
    count: Callable[[str], int]
    config: AwarenessConfig
    has_own: Callable[[], bool]
    """Whether there are folders of cards besides what is built in."""


def configured_cards(settings: Settings) -> CardOptions:
    """Cards as the settings want them."""
    count = token_count(settings)
    return CardOptions(
        lambda: CardLibrary(searched_for_cards(settings), count=count),
        lambda: configured_scorers(settings),
        count,
        awareness_config(settings),
        lambda: any(
            root.source != "built_in" and root.path.exists()
            for root in searched_for_cards(settings)
        ),
    )


def _build(kernel: Kernel, startup: Startup) -> None:
    options = startup.take(CardOptions, lambda: configured_cards(startup.settings))
    config, clock = options.config, kernel.lapsing_clock
    reviews = CardReviews(kernel.store, clock=kernel.wall_clock)
    shelf = CardShelf(options.make_library, reviews, options.has_own)
    chooser = CardChooser(
        config, shelf, clock=clock, make_scorers=options.make_scorers, count=options.count
    )
    memory = AwarenessMemory(kernel.store, config.mode)
    tell = kernel.courier.publish
    awareness = Awareness(config, shelf, chooser, memory, kernel.auditor, tell=tell, clock=clock)
    kernel.provide(awareness, reviews)
    kernel.reload_parts.append(ReloadPart("cards", lambda: _reload(shelf)))
    kernel.file_problems.append(lambda: shelf.problems)


def _reload(shelf: CardShelf) -> Reading:
    before = shelf.own_hashes()
    shelf.changed()

    async def read(_cause: Cause) -> Difference:
        await shelf.reread()
        return Difference.between(before, shelf.own_hashes(), shelf.problems)

    return read


@asynccontextmanager
async def _run(kernel: Kernel, settings: Settings) -> AsyncGenerator[None]:
    """Take over what was decided and counted, follow the folders, and keep what is counted."""
    awareness = kernel.service(Awareness)
    await kernel.service(CardReviews).load()
    await awareness.memory.load()

    reread = awareness.shelf.reread
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reread)
        if settings.watch:
            folders = [root.path for root in searched_for_cards(settings)]
            tasks.start_soon(watch_directories, folders, reread)
        tasks.start_soon(awareness.memory.keep)
        yield
        tasks.cancel_scope.cancel()


SETUP = Setup(build=_build, run=_run)


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
    from remit.features.cards.ranker import CardRanker  # noqa: PLC0415 - the same
    from remit.features.discovery.index import Indexer  # noqa: PLC0415 - the same
    from remit.features.discovery.search_engine import make_embedder  # noqa: PLC0415 - numpy and the vectors
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
