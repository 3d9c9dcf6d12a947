"""A reload of everything that people write: the definitions, and what features read beside them.

INVARIANT: whoever asks for a reload (`config:reload`, SIGHUP, the watcher) reads the same things,
because all of them come here.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec
import structlog

from remit.errors import DefinitionError, Problem, RemitError
from remit.model.principal import Cause
from remit.model.schema import bounded
from remit.policy.plan import Plan

log = structlog.get_logger()

MOST_ERRORS = 1_000
"""More would not fit into a message."""
_MOST_NAMES = 100
NO_CHANGE = Plan({}, 0)


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of a reload. With problems nothing changed, and the revision is marked stale."""

    changed: bool
    revision: int
    plan: Plan = NO_CHANGE
    problems: tuple[Problem, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The plan, and what came of it."""
        return bounded(
            self.plan.to_json() | {"revision": self.revision, "changed": self.changed},
            "agents",
            "profiles",
        )


class Difference(msgspec.Struct, frozen=True):
    """The names that were added, removed and changed of one kind of file. Every list is sorted."""

    total: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @classmethod
    def between(
        cls,
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
        problems: tuple[Problem, ...] = (),
    ) -> "Difference":
        """Compare what there was with what there is, by name.

        Nobody was answered from what was never read, so nothing has changed against it.
        """
        after = after or {}
        before = after if before is None else before
        kept = before.keys() & after.keys()
        return cls(
            len(after),
            tuple(sorted(after.keys() - before.keys())),
            tuple(sorted(before.keys() - after.keys())),
            tuple(sorted(name for name in kept if before[name] != after[name])),
            problems,
        )

    def to_json(self) -> dict[str, Any]:
        """The shape that outside programs read; of each list the beginning."""
        return {
            "total": self.total,
            "added": list(self.added[:_MOST_NAMES]),
            "removed": list(self.removed[:_MOST_NAMES]),
            "changed": list(self.changed[:_MOST_NAMES]),
            "problems": [problem.to_json() for problem in self.problems[:_MOST_NAMES]],
        }


Reading = Callable[[Cause], Awaitable[Difference]]
"""Reads the new files of one part of a reload; raises where they cannot be read."""


class ReloadPart(msgspec.Struct, frozen=True):
    """Something that a full reload reads beside the definitions."""

    name: str
    begin: Callable[[], Reading]
    """Called before anything is read: from then on nobody is answered from the old files."""
    is_strict: bool = False
    """Whether it is read before the definitions, and its mistakes are as bad as theirs."""


class FullReload(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a reload of everything; a part that failed is as it was before."""

    outcome: Outcome | None
    parts: dict[str, Difference]
    """What came of each part that could be read, by its name."""
    problems: tuple[Problem, ...] = ()
    """Mistakes of the definitions, and of files that are as strict as they are."""
    failures: tuple[Exception, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What came of it.

        Raises:
            DefinitionError: definitions or the file of servers have mistakes.
            RemitError: a part could not be read again.
        """
        for failure in self.failures:
            raise failure
        if self.problems:
            raise DefinitionError(self.problems[:MOST_ERRORS])
        if self.outcome is None:  # every failure was raised above
            raise RemitError("nothing was read")
        told = {name: difference.to_json() for name, difference in self.parts.items()}
        return self.outcome.to_json() | told


async def reload_everything(
    reload: Callable[[Cause], Awaitable[Outcome]], parts: Iterable[ReloadPart], cause: Cause
) -> FullReload:
    """Read everything again and put in force what can be; never raises for what it read."""
    # Begun before anything is read: whoever asks while this runs is answered from the new files.
    ordered = sorted(parts, key=lambda part: (not part.is_strict, part.name))
    begun = [(part, part.begin()) for part in ordered]
    failures: list[Exception] = []
    found: dict[str, Difference] = {}

    async def read(*, strict: bool) -> None:
        for part, reading in begun:
            if part.is_strict is strict:
                try:
                    found[part.name] = await reading(cause)
                except Exception as error:
                    failures.append(error)

    await read(strict=True)
    outcome = None
    try:
        outcome = await reload(cause)
    except Exception as error:
        failures.append(error)
    await read(strict=False)
    wrong = list(outcome.problems) if outcome is not None else []
    for part, _ in begun:
        if part.is_strict and part.name in found:
            wrong += found[part.name].problems
    return FullReload(
        outcome=outcome,
        parts={part.name: found[part.name] for part, _ in begun if part.name in found},
        problems=tuple(wrong),
        failures=tuple(failures),
    )


class ProblemLog:
    """Remembers what it told; a problem that went away and came back is told again."""

    def __init__(self, event: str) -> None:
        """Begin with nothing told.

        Args:
            event: the name of the line in the log.
        """
        self._event = event
        self._told: frozenset[tuple[str, str, str]] = frozenset()

    def tell(self, problems: Iterable[Problem]) -> None:
        """Write those that were not there at the last call."""
        found = {(str(one.place), one.code, one.message): one for one in problems}
        for key, problem in found.items():
            if key not in self._told:
                write = log.error if problem.is_error else log.warning
                write(
                    self._event,
                    problem=f"{problem.place}: {problem.message} [{problem.code}]",
                    hint=problem.hint,
                )
        self._told = frozenset(found)
