"""What use has taught so far, and who taught it.

Promises:
- Words of one caller are never shown to another; they only move ranks. Operators can read and
  remove them.
- What one voice teaches moves its own ranks alone; `lessons.py` says when it counts for everybody.
- A caller that ends takes its lessons along.
- Everything is bounded, a caller and a voice at a time: who teaches much displaces its own lessons.
- What is not renewed fades: after `HALF_LIFE` a lesson counts half.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import anyio.lowlevel
import msgspec

from remit.features.discovery.learning.lessons import (
    DECIDED,
    FADED,
    NO_LESSONS,
    Agreed,
    Learned,
    Lesson,
    LessonKind,
    Lessons,
    OwnLesson,
    OwnLessons,
    agree,
    likeness_by_subject,
    most_alike,
    own_penalty,
    standing_of,
)
from remit.features.discovery.learning.watch import is_upkeep, shortened
from remit.model.event import Service
from remit.model.principal import OPERATOR_ID
from remit.text.words import words

Key = tuple[str, str, str, str]

MAX_BY_ONE = 24
"""Examples of one descriptor that one caller may give."""
MAX_BY_CALLER = 2_000
MAX_BY_VOICE = 10_000
MAX_LESSONS = 50_000
MAX_DECIDED = 10_000
_HEAVIEST = 16.0
"""What a lesson weighs at the most, however often it was renewed."""
_DAY = 86_400.0
_A_TURN = 20
"""Subjects that are computed before others get their turn."""


class Experience(Service):
    """Lessons in memory; `take_changes` hands them to whoever keeps them on disk."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        enabled: bool = True,
        root_of: Callable[[str], str] = lambda caller: caller,
        is_trusted: Callable[[str], bool] = lambda _caller: False,
    ) -> None:
        """Begin with nothing.

        Args:
            clock: the time of day.
            enabled: whether anything is learned, and what was learned counts.
            root_of: the client at the top of the tree in which a caller stands.
            is_trusted: whether a caller teaches everybody, now.
        """
        self.enabled = enabled
        self.version = 0
        """Grows with every lesson."""
        self._clock = clock
        self._root_of = root_of
        self._is_trusted = is_trusted
        self._lessons: dict[Key, Lesson] = {}
        self._said: dict[Key, frozenset[str]] = {}
        """The words of each example."""
        self._of_subject: dict[str, dict[Key, None]] = defaultdict(dict)
        self.teachers: dict[str, dict[Key, None]] = {}
        """The lessons of each teacher, the least recent first."""
        self._examples: dict[tuple[str, str], dict[Key, None]] = {}
        """By teacher and subject."""
        self._callers: dict[str, set[str]] = defaultdict(set)
        """By voice."""
        self._sizes: Counter[str] = Counter()
        """Lessons of each voice."""
        self._decided: dict[Key, None] = {}
        self._put: dict[Key, Lesson] = {}
        self._removed: dict[Key, Lesson] = {}
        self._agreed: dict[str, Agreed] = {}
        """What counts for everybody, by subject, as far as it was computed."""
        self._agreed_for: tuple[frozenset[str], float] = (frozenset(), 0.0)

    def load(
        self,
        lessons: Iterable[Lesson],
        lives: Callable[[str], bool] = bool,
        *,
        rewrite: bool = False,
    ) -> None:
        """Begin with what was kept, of teachers that still live; the others are removed.

        Args:
            lessons: what was kept.
            lives: whether a teacher is still there.
            rewrite: whether what is taken over must be written again.
        """
        for lesson in lessons:
            if lesson.kind in DECIDED:
                self._keep(lesson)
                continue
            root = self._root_of(lesson.by)
            is_known = bool(lesson.by) and lives(lesson.by) and lesson.root in ("", root)
            if is_known and not is_upkeep(lesson.subject):
                self._keep(msgspec.structs.replace(lesson, root=root))
            else:
                self._removed[lesson.key] = lesson
        if not rewrite:
            self._put.clear()

    # ---- what happens ----

    def served(self, caller: str, descriptor: str, request: str, beside: Sequence[str]) -> None:
        """Something that was shown for a request did its work, beside what was used before."""
        if not self.enabled:
            return
        self._add(Lesson("example", descriptor, request, caller))
        for other in beside:
            one, another = sorted((descriptor, other))
            self._add(Lesson("together", one, another, caller))

    def count(self, caller: str, descriptor: str, *, failed: bool) -> None:
        """A call worked, or it failed or was refused."""
        if self.enabled:
            weight, failures = (0.0, 1.0) if failed else (1.0, 0.0)
            self._add(Lesson("outcome", descriptor, "", caller, weight, failures))

    def reported(self, caller: str, descriptor: str, *, worked: bool, request: str = "") -> None:
        """Somebody says how it went, which is all that is known about what remit does not call."""
        if is_upkeep(descriptor):
            return
        self.count(caller, descriptor, failed=not worked)
        request = shortened(request)
        if self.enabled and worked and words(request):
            self._add(Lesson("example", descriptor, request, caller))

    def decide(self, subject: str, text: str, kind: LessonKind, by: str) -> None:
        """Let a lesson count for everybody, or never, whoever else teaches it."""
        self._keep(Lesson(kind, subject, text, by, at=self._clock()))
        self.version += 1

    def ended(self, caller: str) -> None:
        """Forget somebody with all that it taught: who comes after it under its name starts new."""
        for key in list(self.teachers.get(caller, ())):
            self._drop(self._lessons[key])

    # ---- what is kept ----

    def _add(self, lesson: Lesson) -> None:
        now = self._clock()
        known = self._lessons.get(lesson.key)
        if known is not None:
            faded = known.faded(now)
            lesson = msgspec.structs.replace(
                faded,
                weight=min(_HEAVIEST, faded.weight + lesson.weight),
                failures=min(_HEAVIEST, faded.failures + lesson.failures),
            )
        self._keep(msgspec.structs.replace(lesson, at=now, root=self._root_of(lesson.by)))
        self.version += 1

    def _keep(self, lesson: Lesson) -> None:
        key = lesson.key
        self._lessons[key] = self._put[key] = lesson
        self._removed.pop(key, None)
        self._of_subject[lesson.subject][key] = None
        self._agreed.pop(lesson.subject, None)
        if lesson.kind in DECIDED:
            self._decided[key] = None
            self._said[key] = frozenset(words(lesson.text, stemmed=False))
            if len(self._decided) > MAX_DECIDED:
                self._drop(self._lessons[next(iter(self._decided))])
            return
        own = self.teachers.setdefault(lesson.by, {})
        if own.pop(key, self) is self:  # it was not there before
            self._sizes[lesson.root] += 1
            self._callers[lesson.root].add(lesson.by)
        own[key] = None
        if lesson.kind == "example":
            self._said.setdefault(key, frozenset(words(lesson.text, stemmed=False)))
            self._thin_out(lesson)
        self._bound(lesson)

    def _thin_out(self, lesson: Lesson) -> None:
        """Keep the newest and the most different: of the two most alike the older one goes."""
        mine = self._examples.setdefault((lesson.by, lesson.subject), {})
        mine[lesson.key] = None
        if len(mine) > MAX_BY_ONE:
            own = [self._lessons[key] for key in mine]
            self._drop(most_alike(own, [self._said[key] for key in mine]))

    def _bound(self, lesson: Lesson) -> None:
        """Make room where most is taught: no voice displaces what others taught."""
        if len(self.teachers.get(lesson.by, ())) > MAX_BY_CALLER:
            self._drop_least_recent(lesson.by)
        elif self._sizes[lesson.root] > MAX_BY_VOICE:
            self._drop_least_recent(self._fullest(lesson.root))
        elif len(self._lessons) - len(self._decided) > MAX_LESSONS:
            self._drop_least_recent(self._fullest(max(self._sizes, key=self._sizes.__getitem__)))

    def _fullest(self, voice: str) -> str:
        return max(sorted(self._callers[voice]), key=lambda one: len(self.teachers[one]))

    def _drop_least_recent(self, caller: str) -> None:
        self._drop(self._lessons[next(iter(self.teachers[caller]))])

    def _drop(self, lesson: Lesson) -> None:
        key = lesson.key
        del self._lessons[key]
        self._said.pop(key, None)
        self._put.pop(key, None)
        self._removed[key] = lesson
        self._decided.pop(key, None)
        self._agreed.pop(lesson.subject, None)
        self._of_subject[lesson.subject].pop(key)
        if not self._of_subject[lesson.subject]:
            del self._of_subject[lesson.subject]
        if lesson.kind not in DECIDED:
            self._drop_of_caller(lesson)
        self.version += 1

    def _drop_of_caller(self, lesson: Lesson) -> None:
        own, examples = self.teachers[lesson.by], (lesson.by, lesson.subject)
        own.pop(lesson.key)
        if not own:
            del self.teachers[lesson.by]
            self._callers[lesson.root].discard(lesson.by)
        self._sizes[lesson.root] -= 1
        if not self._sizes[lesson.root]:
            del self._sizes[lesson.root], self._callers[lesson.root]
        if lesson.kind == "example":
            self._examples[examples].pop(lesson.key)
            if not self._examples[examples]:
                del self._examples[examples]

    # ---- what counts ----

    def lessons(self) -> Lessons:
        """What counts for everybody now, for the next index."""
        if not self.enabled:
            return NO_LESSONS
        for _ in self._agree_on_all():
            pass
        found = sorted(self._agreed.items())
        return Lessons(
            {subject: one.examples for subject, one in found if one.examples},
            {(subject, other): w for subject, one in found for other, w in one.together.items()},
            {subject: one.penalty for subject, one in found if one.penalty > 0},
        )

    async def prepare(self) -> None:
        """Compute what counts for everybody a little at a time, so that others get their turn."""
        for at, _ in enumerate(self._agree_on_all()):
            if at % _A_TURN == 0:
                await anyio.lowlevel.checkpoint()

    def _agree_on_all(self) -> Iterator[str]:
        """Compute what is not known any more, one subject after the other."""
        now = self._clock()
        basis = (self._trusted(), now // _DAY)
        if basis != self._agreed_for:
            self._agreed, self._agreed_for = {}, basis
        for subject in [one for one in self._of_subject if one not in self._agreed]:
            if subject in self._of_subject:  # it may be forgotten by now
                self._agreed[subject] = self._agree(subject, basis[0], now)
            yield subject

    def _trusted(self) -> frozenset[str]:
        return frozenset(caller for caller in self.teachers if self.teaches_everybody(caller))

    def teaches_everybody(self, caller: str) -> bool:
        """Tell whether what a caller teaches counts for everybody at once."""
        return caller == OPERATOR_ID or self._is_trusted(caller)

    def _agree(self, subject: str, trusted: frozenset[str], now: float) -> Agreed:
        lessons = (self._lessons[key].faded(now) for key in self._of_subject[subject])
        return agree(((one, self._said.get(one.key, frozenset())) for one in lessons), trusted)

    def own(self, caller: str, request: str) -> OwnLessons:
        """What the use of a caller itself says about a request of it, in the order of the ids."""
        if not self.enabled or caller not in self.teachers:
            return ()
        now, asked = self._clock(), frozenset(words(shortened(request), stemmed=False))
        served: dict[str, list[frozenset[str]]] = defaultdict(list)
        taught, bad = set(), {}
        for key in self.teachers[caller]:
            kind, subject = key[0], key[1]
            if kind == "example":
                taught.add(subject)
                is_near = not asked.isdisjoint(self._said[key])
                if is_near and self._lessons[key].faded(now).weight >= FADED:
                    served[subject].append(self._said[key])
            elif kind == "outcome" and self._lessons[key].failures:
                lesson = self._lessons[key].faded(now)
                bad[subject] = own_penalty(lesson.weight, lesson.failures)
        near = likeness_by_subject(asked, served, len(taught))
        return tuple(
            OwnLesson(one, round(near.get(one, 0.0), 3), round(bad.get(one, 0.0), 3))
            for one in sorted(near.keys() | bad.keys())
        )

    # ---- for operators ----

    def examples(self, subject: str | None = None) -> list[Learned]:
        """The requests that were learned, by descriptor, the heaviest first."""
        now = self._clock()
        self.lessons()
        found = [
            self._standing(self._lessons[key].faded(now))
            for one in (self._of_subject if subject is None else (subject,))
            for key in self._of_subject.get(one, ())
            if key[0] == "example"
        ]
        return sorted(found, key=lambda one: (one.subject, -one.weight, one.text, one.by))

    def _standing(self, lesson: Lesson) -> Learned:
        decided = self._lessons.get(("decided", lesson.subject, lesson.text, ""))
        counts, voices = standing_of(self._said[lesson.key], self._agreed[lesson.subject])
        if decided is not None:
            counts = "accepted" if decided.kind == "accepted" else "rejected"
        elif self.teaches_everybody(lesson.by):
            counts = "trusted"
        return Learned(lesson.subject, lesson.text, lesson.by, lesson.weight, counts, voices)

    def decisions(self) -> list[Lesson]:
        """What operators decided about requests, the oldest first."""
        return [self._lessons[key] for key in self._decided]

    def forget(self, subject: str | None = None, text: str | None = None) -> int:
        """Remove what was learned: all, all about one descriptor, or one example of it."""
        found = [
            lesson
            for lesson in self._lessons.values()
            if (subject is None or subject in (lesson.subject, lesson.text))
            and (text is None or (lesson.text == text and lesson.kind != "together"))
        ]
        for lesson in found:
            self._drop(lesson)
        return len(found)

    # ---- the disk ----

    def take_changes(self) -> tuple[list[Lesson], list[Lesson]]:
        """What must be written and removed on disk since the last time; it is handed out once."""
        put, removed = list(self._put.values()), list(self._removed.values())
        self._put, self._removed = {}, {}
        return put, removed

    def give_back(self, put: Sequence[Lesson], removed: Sequence[Lesson]) -> None:
        """Take changes back that could not be written; newer ones win."""
        self._put = {one.key: one for one in put if one.key in self._lessons} | self._put
        self._removed = {
            lesson.key: lesson for lesson in removed if lesson.key not in self._lessons
        } | self._removed
