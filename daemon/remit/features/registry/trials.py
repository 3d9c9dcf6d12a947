"""Trials: how each use of a tool or skill went, and what is counted of them.

Promises:
- A call adds one entry to a list. It is counted later, and written with others every few seconds:
  a daemon that is killed loses those seconds, and nothing else.
- Only successes and failures of the tool count in rates. A call that was denied, cancelled, wrong
  in its arguments, or that met a server that is away, is kept and counts in totals alone.
- The tree of agents under one root is one voice of bounded weight.
- Everything is bounded: what waits, what is kept, and what one voice may bring in.
- The order of trials is that in which they came; no clock is asked which one was later.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import asynccontextmanager

import anyio
import msgspec
import structlog
from msgspec.structs import replace

from remit.errors import StoreError
from remit.features.registry.entry import tag as tag_of
from remit.features.registry.entry import tags_of
from remit.features.registry.store import (
    KEPT,
    MissionLabel,
    Trial,
    TrialChanges,
    TrialRow,
    TrialRows,
    TrialTotal,
    outcome_of,
)
from remit.features.registry.voices import TrialScore, Voices
from remit.kernel.authority.fleet import Fleet
from remit.model.descriptor import tool_id
from remit.model.event import Service

log = structlog.get_logger()

MAX_IDS = 20_000
TAGS = 32
"""Of one trial."""
MAX_LABELS = 10_000
RECENT = 10
"""Counted calls that `recent` remembers."""
WARNING_TRIALS = 3
WARNING_RATE = 0.3
_TEXTS = ("id", "model", "by", "root", "mission", "diagnosis")
_BATCH = 512
_WRITE_SECONDS = 5.0
_UPKEEP = (
    *("archive:", "discovery:", "event:", "link:", "mission:", "permission:", "plan:"),
    *("promotion:", "registry:", "session:", "skill:", "smith:", "system:", "tool:", "trial:"),
)
"""Everybody calls these for everything: they are no tools of a mission."""


class TrialWarning(msgspec.Struct, frozen=True):
    """A context in which something seldom works."""

    id: str
    tag: str
    score: TrialScore

    @property
    def message(self) -> str:
        """As in '0 of 5 with tag quoted_fields'."""
        return f"{self.score.successes:.0f} of {self.score.n:.0f} with tag {self.tag}"


class Trials(Service):
    """Counts in memory; what changed is written from time to time."""

    def __init__(self, rows: TrialRows) -> None:
        """Begin with nothing counted; `load` brings what was kept."""
        self._rows = rows
        self._voices = Voices()
        self._totals: dict[str, TrialTotal] = {}
        self._number = 0
        self._waiting: deque[TrialRow] = deque(maxlen=KEPT)
        self._put_totals: dict[str, TrialTotal] = {}
        self._dropped_totals: dict[str, None] = {}
        self._writing: anyio.Lock | None = None
        self.observed: list[TrialRow] = []
        """Calls that were observed and not counted yet."""
        self.labels: dict[tuple[str, str], MissionLabel] = {}
        """By caller and session: the mission that their calls belong to."""
        self.listeners: list[Callable[[Collection[str]], None]] = []
        """Told the ids whose counts have changed, when they are counted."""

    # ---- what is told ----

    def bind(self, caller: str, session: str, label: MissionLabel) -> None:
        """Count the calls of a caller in a session under a mission from now on."""
        self._count_calls()
        self.labels.pop((caller, session), None)
        if len(self.labels) >= MAX_LABELS:
            self.labels.pop(next(iter(self.labels)))
        folded = MissionLabel(label.id, tags_of(label.tags), tag_of(label.model))
        self.labels[caller, session] = folded

    def release(self, caller: str, session: str | None = None) -> None:
        """End the mission of a caller in a session, or all of its missions."""
        for key in [key for key in self.labels if key[0] == caller]:
            if session is None or key[1] == session:
                del self.labels[key]

    def record(self, trial: Trial) -> None:
        """Take in one trial; tags and model may be in any case."""
        self._count_calls()
        tags = tags_of(map(_text, trial.tags[:TAGS]))
        texts = {name: _text(getattr(trial, name)) for name in _TEXTS}
        trial = replace(trial, tags=tags, **texts)
        self._take([replace(trial, model=tag_of(trial.model)).row()])

    def _count_calls(self) -> None:
        if self.observed:
            self.count_calls()

    def count_calls(self) -> None:
        """Count the calls that were observed since the last time."""
        observed, self.observed[:] = self.observed[:], ()
        self._take(observed)

    def _take(self, rows: list[TrialRow]) -> None:
        self._waiting.extend(rows)
        self._number += len(rows)
        changed = set()
        at = 0
        while at < len(rows):  # those of the same kind that follow each other are counted at once
            name, _, root, code, _, _, label, reported = first = rows[at]
            begin, seconds, timed = at, 0.0, 0
            while at < len(rows) and _is_alike(rows[at], first):
                latency = rows[at][4]
                if latency is not None:
                    seconds += latency
                    timed += 1
                at += 1
            outcome = reported or outcome_of(code)
            total = self._total(name)
            setattr(total, outcome, getattr(total, outcome) + at - begin)
            total.seconds += seconds
            total.timed += timed
            changed.add(name)
            if outcome in ("success", "failure"):
                self._count(name, root, label, worked=outcome == "success", times=at - begin)
                if reported is None:
                    total.called += at - begin
                    total.recent = (total.recent + outcome[0] * min(at - begin, RECENT))[-RECENT:]
        for listener in self.listeners:
            listener(changed)

    def _count(
        self, name: str, root: str, label: MissionLabel | None, *, worked: bool, times: int
    ) -> None:
        if not root:
            return
        self._voices.speak((name, "", root), worked=worked, times=times)
        if label is None:
            return
        for tag in label.tags:
            self._voices.speak((name, f"#{tag}", root), worked=worked, times=times)
        if label.model:
            self._voices.speak((name, f"@{label.model}", root), worked=worked, times=times)

    def _total(self, name: str) -> TrialTotal:
        """The total of an id, to be changed."""
        total = self._totals.get(name)
        if total is None:
            if len(self._totals) >= MAX_IDS:
                oldest = next(iter(self._totals))
                del self._totals[oldest]
                self._put_totals.pop(oldest, None)
                self._dropped_totals[oldest] = None
            total = self._totals[name] = TrialTotal(name)
            self._dropped_totals.pop(name, None)
        self._put_totals[name] = total
        return total

    # ---- what is asked ----

    def score(self, name: str) -> TrialScore:
        """How often an implementation worked."""
        return self._score(name, "")

    def by_tag(self, name: str, tag: str) -> TrialScore:
        """How often it worked in missions with a tag."""
        return self._score(name, f"#{tag_of(tag)}")

    def by_model(self, name: str, model: str) -> TrialScore:
        """How often it worked for a model."""
        return self._score(name, f"@{tag_of(model)}")

    def _score(self, name: str, facet: str) -> TrialScore:
        self._count_calls()
        return self._voices.score(name, facet)

    def total(self, name: str) -> TrialTotal:
        """All its trials by outcome, with the latest ones."""
        self._count_calls()
        return self._totals.get(name) or TrialTotal(name)

    def calls(self, name: str) -> tuple[int, tuple[bool, ...]]:
        """How many of its calls counted, and whether the latest ones worked, oldest first."""
        total = self.total(name)
        return total.called, tuple(one == "s" for one in total.recent)

    def totals(self) -> list[TrialTotal]:
        """The totals of everything that was tried, by id."""
        self._count_calls()
        return [self._totals[name] for name in sorted(self._totals)]

    def warnings(
        self,
        tags: Iterable[str] | None = None,
        *,
        accept: Callable[[str], bool] = lambda _id: True,
        root: str | None = None,
    ) -> list[TrialWarning]:
        """Where something works in less than 30 % of at least 3 uses, the worst first.

        Args:
            tags: the context; every known tag when absent.
            accept: the ids that are asked about.
            root: only tags under which this voice has used it.
        """
        self._count_calls()
        asked = None if tags is None else [f"#{tag}" for tag in tags_of(tags)]
        found = []
        for name in filter(accept, self._voices.names()):
            for facet in self._voices.facets(name) if asked is None else asked:
                score = self._voices.score(name, facet)
                is_bad = score.n >= WARNING_TRIALS and score.rate < WARNING_RATE
                if not is_bad or not facet.startswith("#"):
                    continue
                if root is None or self._voices.has_spoken(root, name, facet):
                    found.append(TrialWarning(name, facet[1:], score))
        return sorted(found, key=lambda one: (one.score.rate, -one.score.n, one.id, one.tag))

    async def history(
        self, accept: Callable[[Trial], bool], limit: int, before: int | None = None
    ) -> tuple[Trial, ...]:
        """The latest trials that are accepted, newest first."""
        await self.write()
        return await self._rows.trial_list(accept, limit, before)

    # ---- what is kept ----

    async def load(self) -> None:
        """Begin with what was kept."""
        self._voices.load(await self._rows.trial_voices())
        self._totals = {one.id: one for one in await self._rows.trial_totals()}
        self._number = await self._rows.trial_newest()

    async def write(self) -> None:
        """Write what was counted since the last time; what cannot be written waits.

        Raises:
            StoreError: it could not be written.
        """
        self._writing = self._writing or anyio.Lock()
        async with self._writing:  # what waits again must not overtake what is newer
            self._count_calls()
            if not (self._waiting or self._put_totals or self._dropped_totals):
                return
            changes = self._take_changes()
            try:
                await self._rows.trial_write(changes)
            except BaseException:  # cancelled as well: it is written once more at the end
                self._give_back(changes)
                raise

    def _take_changes(self) -> TrialChanges:
        changes = TrialChanges(
            self._number,
            tuple(self._waiting),
            *self._voices.take_changes(),
            tuple(map(replace, self._put_totals.values())),
            tuple(self._dropped_totals),
        )
        for pending in (self._waiting, self._put_totals, self._dropped_totals):
            pending.clear()
        return changes

    def _give_back(self, changes: TrialChanges) -> None:
        room = KEPT - len(self._waiting)
        self._waiting.extendleft(reversed(changes.trials[-room:] if room else ()))
        self._voices.give_back(changes.voices, changes.dropped)
        for total in changes.totals:
            if total.id in self._totals:
                self._put_totals[total.id] = self._totals[total.id]
        gone = (one for one in changes.dropped_totals if one not in self._totals)
        self._dropped_totals |= dict.fromkeys(gone)

    @asynccontextmanager
    async def keeping(self) -> AsyncGenerator[None]:
        """Write from time to time, for as long as this is open, and once more then."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep)
            yield
            tasks.cancel_scope.cancel()

    async def _keep(self) -> None:
        try:
            while True:
                await anyio.sleep(_WRITE_SECONDS)
                try:
                    await self.write()
                except StoreError as error:
                    log.warning("trials_not_written", problem=str(error))
        finally:
            with anyio.move_on_after(_WRITE_SECONDS, shield=True):
                await self.write()


class TrialObserver:
    """Makes a trial of every call of a tool that comes through the dispatcher."""

    waiting = True

    def __init__(self, trials: Trials, fleet: Fleet, clock: Callable[[], float]) -> None:
        self._trials = trials
        self._observed = trials.observed
        self._labels = trials.labels
        self._agent = fleet.get
        self._lives = fleet.principal
        self._clock = clock
        self._ids: dict[str, str] = {}

    def answered(
        self,
        caller: str,
        session: str | None,
        event: str,
        code: str = "",
        seconds: float | None = None,
    ) -> None:
        """A call was answered, well or with an error code."""
        name = self._ids.get(event)
        if name is None:
            name = self._name(event)
        if not name:
            return
        label = self._labels.get((caller, session or "")) if self._labels else None
        # The root is looked up now: an agent that has ended is under nobody.
        observed = self._observed
        observed.append(
            (name, caller, self._root(caller), code, seconds, self._clock(), label, None)
        )
        if len(observed) >= _BATCH:
            self._trials.count_calls()

    def _name(self, event: str) -> str:
        if len(self._ids) >= MAX_IDS:  # upstream tools come and go
            self._ids.clear()
        name = self._ids[event] = "" if event.startswith(_UPKEEP) else tool_id(event)
        return name

    def _root(self, caller: str) -> str:
        agent = self._agent(caller)
        if agent is None:
            return caller if self._lives(caller) is not None else ""
        while agent.parent is not None and (above := self._agent(agent.parent)) is not None:
            agent = above
        return agent.id


def _text(text: str) -> str:
    """Without what has no UTF-8: one such text would keep everything from being written."""
    return text.encode("utf-8", "replace").decode()


def _is_alike(row: TrialRow, other: TrialRow) -> bool:
    """Tell whether two uses count in the same places."""
    return (
        row[0] == other[0]
        and row[3] == other[3]
        and row[2] == other[2]
        and row[6] is other[6]
        and row[7] is other[7]
    )
