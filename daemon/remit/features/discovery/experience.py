"""What use has taught, in the form that an index is made from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import anyio
import msgspec
import structlog

from remit.errors import StoreError
from remit.model.descriptor import tool_id
from remit.model.event import Service
from remit.text.words import words

if TYPE_CHECKING:
    from remit.features.discovery.store import LessonRows

log = structlog.get_logger()


class Lessons(msgspec.Struct, frozen=True):
    """Requests that descriptors served, what was used together, and what failed."""

    examples: Mapping[str, Sequence[str]] = {}
    """By descriptor id."""
    together: Mapping[tuple[str, str], float] = {}
    """How often two ids were used for one request, decayed; each pair once, in order."""
    penalties: Mapping[str, float] = {}
    """By descriptor id, from 0 (none) to 1: how often it failed those who chose it."""


NO_LESSONS = Lessons()


# Learning from use: which requests led to which descriptors, what is used together, what fails.
#
# Promises:
# - Words of one caller are never shown to another; they only move ranks. Operators can read and
#   remove them.
# - Everything is bounded: examples a descriptor, how many of them one caller may give, pairs, and
#   the
#   calls that are watched after a question.
# - What is not renewed fades: after `HALF_LIFE` a lesson counts half.
# - No caller alone decides what another one finds: failures are counted a caller at a time.


LessonKind = Literal["example", "together", "outcome"]

MAX_EXAMPLES = 24
MAX_BY_ONE = 12
MAX_TOGETHER = 20_000
MAX_OUTCOMES = 50_000
HALF_LIFE = 30 * 86_400.0
_FADED = 0.2
_REQUEST = 300
"""Characters of a request that are kept."""
_WATCHED = 600.0
"""Seconds after a question in which calls belong to it."""
_STEPS = 8
"""Different descriptors that one question can teach about."""
_CALLERS = 10_000
_MISSED = 0.5
"""What a call teaches that the question had not found: it may belong to something else."""
_SURE = 3.0
"""Outcomes of one caller after which its opinion counts whole."""
_UPKEEP = ("discovery:", "event:", "permission:", "session:", "system:")
"""Everybody calls these for everything: they answer no request in particular."""
_FAULTS = frozenset({"internal", "timeout", "store_unavailable"})
"""Failures of the tool; the others are mistakes or refusals of the caller."""
_WRITE_SECONDS = 2.0


class Lesson(msgspec.Struct, frozen=True):
    """One thing learned: `text` is a request, the other id of a pair, or nothing."""

    kind: LessonKind
    subject: str
    text: str
    by: str = ""
    weight: float = 1.0
    failures: float = 0.0
    at: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it the same lesson; an outcome is its caller's own."""
        return (self.kind, self.subject, self.text, self.by if self.kind == "outcome" else "")

    def faded(self, now: float) -> "Lesson":
        """The lesson as it counts now."""
        share = 0.5 ** (max(0.0, now - self.at) / HALF_LIFE)
        return msgspec.structs.replace(
            self, weight=self.weight * share, failures=self.failures * share, at=now
        )


class _Question(msgspec.Struct):
    """The latest question of one caller in one session, and what it did since."""

    request: str
    found: frozenset[str]
    at: float
    used: list[str] = []


class Experience(Service):
    """Lessons in memory; `changes` are for whoever keeps them on disk."""

    def __init__(self, clock: Callable[[], float], *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.version = 0
        """Grows with every lesson."""
        self.waiting: dict[tuple[str, str], _Question] = {}
        """Questions whose consequences are watched, by caller and session."""
        self._clock = clock
        self._lessons: dict[tuple[str, str, str, str], Lesson] = {}
        self._examples: dict[str, dict[tuple[str, str, str, str], None]] = {}
        self._put: dict[tuple[str, str, str, str], Lesson] = {}
        self._removed: dict[tuple[str, str, str, str], Lesson] = {}

    def load(self, lessons: Iterable[Lesson]) -> None:
        """Begin with what was kept."""
        for lesson in lessons:
            self._keep(lesson)
        self._put.clear()

    def asked(self, caller: str, session: str, request: str, found: Iterable[str]) -> None:
        """Somebody asked; what it calls next belongs to this question."""
        request = " ".join(request[: 4 * _REQUEST].split())[:_REQUEST]
        if not self.enabled or not words(request):
            return
        self.waiting.pop((caller, session), None)
        if len(self.waiting) >= _CALLERS:
            self.waiting.pop(next(iter(self.waiting)))
        self.waiting[caller, session] = _Question(request, frozenset(found), self._clock())

    def used(self, caller: str, session: str, descriptor: str, *, failed: bool = False) -> None:
        """Somebody called what a descriptor stands for, and it worked or it failed."""
        question = self.waiting.get((caller, session))
        if question is None or not self.enabled:
            return
        if self._clock() - question.at > _WATCHED:
            del self.waiting[caller, session]
            return
        self._count(descriptor, caller, failed=failed)
        if failed or descriptor in question.used or len(question.used) >= _STEPS:
            return
        weight = 1.0 if descriptor in question.found else _MISSED
        self._add(Lesson("example", descriptor, question.request, caller, weight))
        for one, other in combinations(sorted([*question.used, descriptor]), 2):
            if descriptor in (one, other):
                self._add(Lesson("together", one, other))
        question.used.append(descriptor)

    def reported(self, caller: str, descriptor: str, *, worked: bool, request: str = "") -> None:
        """Somebody says how it went, which is all that is known about what remit does not call."""
        if not self.enabled:
            return
        self._count(descriptor, caller, failed=not worked)
        request = " ".join(request[: 4 * _REQUEST].split())[:_REQUEST]
        if worked and words(request):
            self._add(Lesson("example", descriptor, request, caller))

    def _count(self, descriptor: str, caller: str, *, failed: bool) -> None:
        weight, failures = (0.0, 1.0) if failed else (1.0, 0.0)
        self._add(Lesson("outcome", descriptor, "", caller, weight, failures))

    def _add(self, lesson: Lesson) -> None:
        now = self._clock()
        known = self._lessons.get(lesson.key)
        if known is not None:
            faded = known.faded(now)
            lesson = msgspec.structs.replace(
                faded,
                weight=faded.weight + lesson.weight,
                failures=faded.failures + lesson.failures,
            )
        self._keep(msgspec.structs.replace(lesson, at=now))
        self.version += 1

    def _keep(self, lesson: Lesson) -> None:
        self._lessons[lesson.key] = self._put[lesson.key] = lesson
        self._removed.pop(lesson.key, None)
        if lesson.kind == "example":
            self._examples.setdefault(lesson.subject, {})[lesson.key] = None
            self._thin_out(lesson.subject, lesson.by)
        else:
            limit = MAX_TOGETHER if lesson.kind == "together" else MAX_OUTCOMES
            self._bound(lesson.kind, limit)

    def _thin_out(self, subject: str, caller: str) -> None:
        """Keep the newest and the most different: of the two most alike the older one goes."""
        own = [self._lessons[key] for key in self._examples[subject]]
        mine = [lesson for lesson in own if lesson.by == caller]
        if len(mine) > MAX_BY_ONE:
            self._drop(_most_alike(mine))
        elif len(own) > MAX_EXAMPLES:
            self._drop(_most_alike(own))

    def _bound(self, kind: LessonKind, limit: int) -> None:
        if len(self._lessons) <= limit + MAX_OUTCOMES:
            return
        found = [lesson for lesson in self._lessons.values() if lesson.kind == kind]
        for lesson in sorted(found, key=lambda lesson: lesson.at)[: max(0, len(found) - limit)]:
            self._drop(lesson)

    def _drop(self, lesson: Lesson) -> None:
        del self._lessons[lesson.key]
        self._put.pop(lesson.key, None)
        self._removed[lesson.key] = lesson
        if lesson.kind == "example":
            self._examples[lesson.subject].pop(lesson.key, None)
        self.version += 1

    def lessons(self) -> Lessons:
        """Everything that still counts, for the next index."""
        now = self._clock()
        examples: dict[str, list[str]] = {}
        together: dict[tuple[str, str], float] = {}
        opinions: dict[str, list[tuple[float, float]]] = {}
        for kept in self._lessons.values():
            lesson = kept.faded(now)
            if lesson.kind == "outcome":
                opinions.setdefault(lesson.subject, []).append((lesson.weight, lesson.failures))
            elif lesson.weight < _FADED:
                continue
            elif lesson.kind == "example":
                examples.setdefault(lesson.subject, []).append(lesson.text)
            else:
                together[lesson.subject, lesson.text] = lesson.weight
        penalties = {subject: _penalty(counts) for subject, counts in opinions.items()}
        return Lessons(
            {subject: sorted(found) for subject, found in sorted(examples.items())},
            together,
            {subject: penalty for subject, penalty in penalties.items() if penalty > 0},
        )

    def examples(self, subject: str | None = None) -> list[Lesson]:
        """The requests that were learned, by descriptor, the heaviest first."""
        now = self._clock()
        found = [
            lesson.faded(now)
            for lesson in self._lessons.values()
            if lesson.kind == "example" and subject in (None, lesson.subject)
        ]
        return sorted(found, key=lambda lesson: (lesson.subject, -lesson.weight, lesson.text))

    def forget(self, subject: str | None = None, text: str | None = None) -> int:
        """Remove what was learned: all, all about one descriptor, or one example of it."""
        found = [
            lesson
            for lesson in self._lessons.values()
            if (subject is None or subject in (lesson.subject, lesson.text))
            and (text is None or (lesson.kind == "example" and lesson.text == text))
        ]
        for lesson in found:
            self._drop(lesson)
        return len(found)

    def take_changes(self) -> tuple[list[Lesson], list[Lesson]]:
        """What must be written and removed on disk since the last time; it is handed out once."""
        put, removed = list(self._put.values()), list(self._removed.values())
        self._put, self._removed = {}, {}
        return put, removed

    def give_back(self, put: Sequence[Lesson], removed: Sequence[Lesson]) -> None:
        """Take changes back that could not be written; newer ones win."""
        self._put = {lesson.key: lesson for lesson in put} | self._put
        self._removed = {
            lesson.key: lesson for lesson in removed if lesson.key not in self._lessons
        } | self._removed


_DECODER = msgspec.json.Decoder(Lesson)


class Watch:
    """Tells experience how the calls went that followed a question."""

    def __init__(self, experience: Experience) -> None:
        self._experience = experience
        self.waiting = experience.waiting
        """Empty when nobody asked: then there is nothing to watch, and that costs nothing."""

    def answered(
        self,
        caller: str,
        session: str | None,
        event: str,
        code: str = "",
        _seconds: float | None = None,
    ) -> None:
        """A call was answered, well or with an error code."""
        if (caller, session or "") not in self.waiting or event.startswith(_UPKEEP):
            return
        if not code or code in _FAULTS:
            self._experience.used(caller, session or "", tool_id(event), failed=bool(code))


async def load_lessons(store: "LessonRows", tenant: str, experience: Experience) -> None:
    """Begin with what earlier runs learned; a lesson that cannot be read is left out."""
    found = []
    for body in (await store.lesson_list(tenant)).values():
        try:
            found.append(_DECODER.decode(body))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
    experience.load(found)


async def write_lessons(store: "LessonRows", tenant: str, experience: Experience) -> None:
    """Write down what was learned since the last time; what cannot be written waits."""
    put, removed = experience.take_changes()
    if not put and not removed:
        return
    try:
        await store.lesson_write(
            tenant,
            {_row_name(lesson): msgspec.json.encode(lesson) for lesson in put},
            [_row_name(lesson) for lesson in removed],
        )
    except StoreError:
        experience.give_back(put, removed)
        raise


async def keep_lessons(store: "LessonRows", tenant: str, experience: Experience) -> None:
    """Write lessons from time to time until cancelled, and once more then."""
    try:
        while True:
            await anyio.sleep(_WRITE_SECONDS)
            try:
                await write_lessons(store, tenant, experience)
            except StoreError as error:
                log.warning("lessons_not_written", problem=str(error))
    finally:
        with anyio.move_on_after(_WRITE_SECONDS, shield=True):
            await write_lessons(store, tenant, experience)


def _most_alike(lessons: Sequence[Lesson]) -> Lesson:
    """The older one of the two whose words agree most."""
    sets = [frozenset(words(lesson.text)) for lesson in lessons]
    one, other = max(
        combinations(range(len(lessons)), 2),
        key=lambda pair: (_overlap(sets[pair[0]], sets[pair[1]]), -pair[0], -pair[1]),
    )
    return min(lessons[one], lessons[other], key=lambda lesson: (lesson.at, lesson.weight))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def _penalty(opinions: Sequence[tuple[float, float]]) -> float:
    """How often it failed, each caller counting once at the most, and not at all when unsure."""
    total = failed = 0.0
    for successes, failures in opinions:
        count = successes + failures
        if count > 0:
            voice = min(1.0, count / _SURE)
            total += voice
            failed += voice * failures / count
    return failed / (total + 1.0) if total else 0.0


def _row_name(lesson: Lesson) -> str:
    return blake2b(msgspec.json.encode(lesson.key), digest_size=16).hexdigest()
