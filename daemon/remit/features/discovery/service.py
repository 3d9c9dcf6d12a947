"""Discovery for callers of the daemon: an engine that follows the revision, the folders and use.

The index is made when something is first searched for, so a daemon that nobody asks pays nothing.
It may lag behind the revision in force; that never shows anything, because every question is asked
of the caller's present grant.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio import to_thread

from remit.errors import Problem
from remit.features.discovery.descriptors import (
    bound_to_files,
    event_descriptors,
    join,
    with_callable,
    with_loaded,
    with_needs,
)
from remit.features.discovery.learning.experience import Experience
from remit.features.discovery.learning.lessons import NO_LESSONS
from remit.features.discovery.questions import DiscoveryConfig
from remit.features.skills.files import SkillReader
from remit.features.skills.views import bind_skills, binding_problems
from remit.kernel.authority.revision import Authority
from remit.kernel.reload.full_reload import ProblemLog
from remit.model.descriptor import Descriptor
from remit.model.event import Service

if TYPE_CHECKING:
    from remit.features.discovery.engine import Engine

_TEND_SECONDS = 5.0
_RETRY_SECONDS = 60.0
"""Between two attempts to get vectors from a model that does not answer."""


Made = tuple[int, int, frozenset[str]]
"""What an index was made from: the revision, the state of the folders, servers that are away."""


class Gathered(msgspec.Struct, frozen=True):
    """What the folders hold besides events."""

    descriptors: tuple[Descriptor, ...] = ()
    problems: tuple[Problem, ...] = ()
    overridden: tuple[str, ...] = ()
    workspace: frozenset[str] = frozenset()
    """Ids that the workspace says, and nobody whom the operator chose."""


class Discovery(Service):
    """Keeps an engine up to date and answers from it."""

    def __init__(
        self,
        authority: Authority,
        *,
        make_engine: Callable[[], "Engine"],
        gather: Callable[[], Gathered] = Gathered,
        experience: Experience,
        usual: DiscoveryConfig,
    ) -> None:
        """Wire the parts; nothing is read or built yet.

        Args:
            authority: knows the revision in force.
            make_engine: loads the models; called once, in a worker thread.
            gather: reads the folders of skills and manifests; called in a worker thread.
            experience: what use has taught so far.
            usual: the budgets of this installation.
        """
        self._authority = authority
        self._make_engine = make_engine
        self._gather = gather
        self._experience = experience
        self.usual = usual
        self._engine: Engine | None = None
        self._made_from: Made = (0, 0, frozenset())
        self._taught, self._lessons = 0, NO_LESSONS
        self._folders, self._gathered_at = 1, 0
        self._lock: Any = None
        self._coming: anyio.Event | None = None
        """Set when vectors are to be made; None: nobody makes them behind a question's back."""
        self._problem_log = ProblemLog("capability_file_problem")
        self.gathered = Gathered()
        self.unbound: tuple[Problem, ...] = ()
        """Names in the catalogue or in files that bind a skill to nothing."""
        self.hidden: tuple[str, ...] = ()
        """Ids of files that an event has as well: the event counts."""
        self.skills = SkillReader()
        """Reads the folders of skills for those who may see them."""
        self.unavailable: Callable[[], Mapping[str, str]] = dict
        """The upstream servers that do not answer now, and why."""
        self.on_folders: Callable[[], None] = lambda: None
        """Told that skills may have come, gone or changed; in the loop."""
        self.build_seconds = 0.0

    def folders_changed(self) -> None:
        """Say that the folders must be read again before the next answer."""
        self._folders += 1
        self.on_folders()

    async def engine(self) -> "Engine":
        """The engine, with an index of everything that is in force now."""
        if self._engine is None or self._made_from != self._wanted():
            await self.refresh()
        assert self._engine is not None  # noqa: S101 - a refresh makes one
        return self._engine

    async def engine_for(self, request: str) -> "Engine":
        """The engine, ready to answer this request without waiting for a slow model."""
        engine = await self.engine()
        if engine.is_slow:
            await to_thread.run_sync(engine.embed, request)
        return engine

    def _wanted(self) -> Made:
        return (self._authority.catalogue.revision, self._folders, frozenset(self.unavailable()))

    async def refresh(self) -> None:
        """Make the index again, from whatever changed; callers at the same time wait for one."""
        if self._lock is None:
            self._lock = anyio.Lock()
        before = self._made_from
        async with self._lock:
            if self._made_from == before or self._made_from != self._wanted():
                await self._refresh()

    async def _refresh(self) -> None:
        wanted, current, lessons = self._wanted(), self._authority.current, self._experience
        catalogue, table = current.catalogue, current.table
        engine = self._engine
        if engine is None:
            engine = await to_thread.run_sync(self._make_engine)
        await self._read_folders(wanted[1])
        # What somebody made at run time neither hides a skill from others nor shows one to anybody.
        capabilities = tuple(
            one
            for name, one in catalogue.capabilities.items()
            if name not in catalogue.runtime_capabilities
        )
        others = with_loaded(self.gathered.descriptors, table.sources)
        others = with_callable(others, catalogue.universe)
        self.unbound = binding_problems(others, capabilities)
        self._problem_log.tell(self.problems)
        events = event_descriptors(table.by_event, catalogue, self.unavailable())
        taken = {event.id for event in events}
        self.hidden = tuple(one.id for one in others if one.id in taken)
        known = {one.id for one in capabilities}
        bound = bound_to_files(bind_skills(others, capabilities), known)
        descriptors = with_needs(join(events, bound))
        await lessons.prepare()
        taught, self._lessons = lessons.version, lessons.lessons()
        started = time.perf_counter()
        prepare = partial(engine.prepare, words_first=self._coming is not None)
        prepared = await to_thread.run_sync(prepare, descriptors, self._lessons)
        self.build_seconds = time.perf_counter() - started
        engine.put_in_force(prepared)
        self._engine, self._made_from, self._taught = engine, wanted, taught
        if self._coming is not None and engine.is_incomplete:
            self._coming.set()

    async def complete(self, retry_seconds: float = _RETRY_SECONDS) -> None:
        """Make the vectors of indexes that were put in force without them, until cancelled.

        While this runs, no question waits for the vectors of a large catalogue.
        """
        self._coming = anyio.Event()
        try:
            while True:
                await self._coming.wait()
                self._coming = anyio.Event()
                engine = await self.engine()
                while engine.is_incomplete:
                    await to_thread.run_sync(engine.embed_coming)
                    if engine.problem:
                        await anyio.sleep(retry_seconds)
                await self.refresh()
        finally:
            self._coming = None

    @property
    def has_read_folders(self) -> bool:
        """Tell whether what is gathered was ever gathered."""
        return self._gathered_at > 0

    async def read_folders(self) -> None:
        """Read the folders if they changed, and log what is wrong there; nothing is indexed."""
        if self._lock is None:
            self._lock = anyio.Lock()
        async with self._lock:
            if await self._read_folders(self._folders):
                self._problem_log.tell(self.problems)

    async def _read_folders(self, wanted: int) -> bool:
        """Read them again, unless that was done; tells whether it was necessary."""
        if self._gathered_at == wanted:
            return False
        self.gathered = await to_thread.run_sync(self._gather)
        self._gathered_at = wanted
        return True

    async def tend(self, seconds: float = _TEND_SECONDS) -> None:
        """Take in what use has taught, from time to time, until cancelled."""
        while True:
            started = anyio.current_time()
            await self.learn()
            # A large index takes longer, and is made less often: never more than a tenth of a core.
            await anyio.sleep(max(seconds, 10 * (anyio.current_time() - started)))

    async def learn(self) -> None:
        """Take in what use has taught, if an index was made and something else counts now."""
        await self._experience.prepare()
        if self._engine is not None and self._must_learn():
            await self.refresh()

    def _must_learn(self) -> bool:
        """Tell whether something else counts for everybody; own lessons need no other index."""
        version = self._experience.version
        if self._taught == version:
            return False
        self._taught = version
        return self._experience.lessons() != self._lessons

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that is wrong with the files behind the index."""
        return (*self.gathered.problems, *self.unbound)

    @property
    def overridden(self) -> list[str]:
        """What stands in a file and does not count, and what counts instead."""
        return [
            *self.gathered.overridden,
            *(f"{one}: the event of that name" for one in self.hidden),
        ]
