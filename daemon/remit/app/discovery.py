"""Discovery beside the daemon: its settings, its folders, and what it learns from use."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from remit.app.assemble import Search
from remit.config.settings.table import Settings
from remit.features.discovery.answers import DiscoveryConfig
from remit.features.discovery.learning import keep_lessons, load_lessons
from remit.features.discovery.service import Gathered
from remit.features.skills.directories import CapabilityDirectory, DirectoryScanner, directories
from remit.kernel.dispatch.services import Services

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine


def configured_search(settings: Settings) -> Search:
    """Discovery as the settings want it; nothing is loaded before something is searched for."""

    def make_engine() -> "Engine":
        from remit.app.search_engine import make_engine  # noqa: PLC0415 - numpy and the vectors

        return make_engine(settings)

    return Search(make_engine, gatherer(settings), usual_config(settings), learn=settings.learn)


def usual_config(settings: Settings) -> DiscoveryConfig:
    """The budgets that this installation is configured with."""
    return DiscoveryConfig(
        map_tokens=settings.discovery_map_tokens,
        summary_tokens=settings.discovery_summary_tokens,
        detail_tokens=settings.discovery_detail_tokens,
        total_tokens=settings.discovery_total_tokens,
        top_k=settings.discovery_top_k,
        top_n=settings.discovery_top_n,
        min_relevance=settings.discovery_min_relevance,
    )


def searched(settings: Settings) -> tuple[CapabilityDirectory, ...]:
    """The directories of skills, manifests and extensions, weakest first."""
    return directories(os.environ, Path.cwd(), settings.capability_dirs)


def gatherer(settings: Settings) -> Callable[[], Gathered]:
    """Reads the directories again each time, parsing only what has changed."""
    scanner = DirectoryScanner()

    def gather() -> Gathered:
        found = scanner.scan(searched(settings))
        overridden = tuple(map(str, found.overridden))
        return Gathered(found.descriptors, found.problems, overridden, found.workspace)

    return gather


@asynccontextmanager
async def discovering(settings: Settings, services: Services) -> AsyncGenerator[None]:
    """Follow the folders, take in what use teaches, and keep it."""
    import anyio  # noqa: PLC0415 - commands without a daemon import this module as well

    from remit.kernel.reload.watch import watch_directories  # noqa: PLC0415 - the same

    finder, store, experience = services.finder, services.store, services.experience
    await load_lessons(store, settings.tenant, experience)

    async def changed() -> None:
        finder.folders_changed()
        await finder.read_folders()  # what is wrong is in the log before somebody searches

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(finder.read_folders)
        if settings.watch:
            tasks.start_soon(watch_directories, [one.path for one in searched(settings)], changed)
        if settings.learn:
            tasks.start_soon(keep_lessons, store, settings.tenant, experience)
            tasks.start_soon(finder.tend)
        yield
        tasks.cancel_scope.cancel()
