"""Discovery in a daemon: its service, its folders, and what it learns from use."""

import os
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from remit.config.settings.table import Settings
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.reviews import lesson_reviews
from remit.features.discovery.learning.store import LessonKeeper, LessonRows
from remit.features.discovery.learning.watch import Watch
from remit.features.discovery.questions import DiscoveryConfig
from remit.features.discovery.service import Discovery, Gathered
from remit.features.reviews.desk import ReviewDesk
from remit.features.skills.directories import CapabilityDirectory, DirectoryScanner, directories
from remit.features.skills.views import SkillCatalogue
from remit.kernel.dispatch.context import Kernel
from remit.kernel.feature import Setup, Startup
from remit.kernel.reload.full_reload import Difference, Reading, ReloadPart
from remit.kernel.reload.watch import watch_directories
from remit.model.descriptor import Descriptor
from remit.model.grant import Grant
from remit.model.principal import Cause

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine


class SearchOptions(msgspec.Struct, frozen=True):
    """How discovery is configured; nothing is loaded before something is searched for."""

    make_engine: Callable[[], "Engine"]
    gather: Callable[[], Gathered] = Gathered
    usual: DiscoveryConfig = DiscoveryConfig()
    learn: bool = True


def configured_search(settings: Settings) -> SearchOptions:
    """Discovery as the settings want it."""

    def make_engine() -> "Engine":
        from remit.features.discovery.engine import make_engine  # noqa: PLC0415 - numpy and the vectors

        return make_engine(settings)

    return SearchOptions(make_engine, gatherer(settings), usual_config(settings), settings.learn)


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
        graph_boost_factor=settings.discovery_graph_boost_factor,
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


async def _restore(startup: Startup) -> None:
    """Choose how folders are read: extensions that are loaded again are looked up there."""
    startup.put(startup.take(SearchOptions, lambda: configured_search(startup.settings)))


def _build(kernel: Kernel, startup: Startup) -> None:
    options = startup.take(SearchOptions, lambda: configured_search(startup.settings))
    fleet = kernel.authority.fleet
    experience = Experience(
        kernel.wall_clock,
        enabled=options.learn,
        root_of=fleet.root,
        is_trusted=lambda caller: fleet.grant(caller, kernel.authority.catalogue).trusted,
    )
    keeper = LessonKeeper(LessonRows(kernel.database), startup.settings.tenant, experience)
    discovery = Discovery(
        kernel.authority,
        make_engine=options.make_engine,
        gather=options.gather,
        experience=experience,
        usual=options.usual,
    )
    discovery.on_folders = kernel.delivery.all_lists_changed
    discovery.unavailable = kernel.unavailable

    async def shown(grant: Grant, *, everything: bool) -> Iterable[Descriptor]:
        engine = await discovery.engine()
        view = engine.view(grant, everything=everything)
        return (view.index.descriptors[row] for row in view.rows)

    watch = Watch(experience, kernel.wall_clock)
    kernel.provide(discovery, experience, keeper, watch, SkillCatalogue(discovery.skills, shown))
    kernel.observers.append(watch)
    kernel.on_refusal.append(watch.refused)
    kernel.on_end.extend((watch.ended, experience.ended))
    if desk := kernel.find(ReviewDesk):
        desk.register(lesson_reviews(experience, keeper, discovery.learn))
    kernel.reload_parts.append(ReloadPart("skills", lambda: _reload(discovery)))
    kernel.file_problems.append(lambda: discovery.problems)


def _reload(discovery: Discovery) -> Reading:
    before = _skills(discovery)
    discovery.folders_changed()

    async def read(_cause: Cause) -> Difference:
        await discovery.read_folders()
        return Difference.between(before, _skills(discovery), discovery.problems)

    return read


def _skills(discovery: Discovery) -> dict[str, Descriptor] | None:
    if not discovery.has_read_folders:
        return None
    return {one.id: one for one in discovery.gathered.descriptors}


@asynccontextmanager
async def _run(kernel: Kernel, settings: Settings) -> AsyncGenerator[None]:
    """Follow the folders, take in what use teaches, and keep it."""
    discovery, keeper = kernel.service(Discovery), kernel.service(LessonKeeper)
    if settings.learn:
        await keeper.load(lambda name: kernel.authority.fleet.principal(name) is not None)

    async def changed() -> None:
        discovery.folders_changed()
        await discovery.read_folders()  # what is wrong is in the log before somebody searches

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(discovery.read_folders)
        tasks.start_soon(discovery.complete)
        if settings.watch:
            tasks.start_soon(watch_directories, [one.path for one in searched(settings)], changed)
        if settings.learn:
            tasks.start_soon(keeper.keep)
            tasks.start_soon(discovery.tend)
        yield
        tasks.cancel_scope.cancel()


SETUP = Setup(restore=_restore, build=_build, run=_run)
