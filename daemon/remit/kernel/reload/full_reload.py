"""A reload of everything that people write: definitions, upstream servers, cards, skills.

INVARIANT: whoever asks for a reload (`config:reload`, SIGHUP, the watcher) reads the same things,
because all of them come here.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from remit.errors import RemitError
from remit.model.descriptor import Descriptor
from remit.model.place import DefinitionError, Problem
from remit.model.principal import Cause

if TYPE_CHECKING:  # commands import this module by way of its event, and log nothing
    from remit.features.cards.library_cache import CardShelf
    from remit.features.discovery.service import Finder
    from remit.kernel.dispatch.services import Services
    from remit.kernel.reload.reload import Outcome

MOST_ERRORS = 1_000
"""More would not fit into a message."""
_MOST_NAMES = 100
Result = TypeVar("Result")


class Difference(msgspec.Struct, frozen=True):
    """What came, went and changed of one kind of file. Every list is sorted."""

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


class FullReload(msgspec.Struct, frozen=True, kw_only=True):
    """How a reload of everything ended; a part that failed is as it was before."""

    outcome: "Outcome | None"
    upstreams: Difference | None
    cards: Difference | None
    skills: Difference | None
    failures: tuple[Exception, ...]

    def to_json(self) -> dict[str, Any]:
        """What came of it.

        Raises:
            DefinitionError: definitions or the file of servers have mistakes.
            RemitError: a part could not be read again.
        """
        for failure in self.failures:
            raise failure
        if self.outcome is None or self.upstreams is None:  # every failure was raised above
            raise RemitError("nothing was read")
        wrong = (*self.outcome.problems, *self.upstreams.problems)
        if wrong:
            raise DefinitionError(wrong[:MOST_ERRORS])
        parts = {"upstreams": self.upstreams, "cards": self.cards, "skills": self.skills}
        told = {name: part.to_json() for name, part in parts.items() if part is not None}
        return self.outcome.to_json() | told


async def reload_everything(services: "Services", cause: Cause) -> FullReload:
    """Read everything again and put in force what can be; never raises for what it read."""
    shelf, finder = services.awareness.shelf, services.finder
    known_cards, known_skills = shelf.own_hashes(), _skills(finder)
    # Whoever asks while this runs is answered from the new files.
    finder.folders_changed()
    shelf.changed()
    failures: list[Exception] = []

    async def tried(read: Callable[[], Awaitable[Result]]) -> Result | None:
        try:
            return await read()
        except Exception as error:
            failures.append(error)
            return None

    upstreams = await tried(lambda: _upstreams(services, cause))
    outcome = await tried(lambda: services.reloader.reload(cause))
    cards = await tried(lambda: _cards(shelf, known_cards))
    skills = await tried(lambda: _folders(finder, known_skills))
    return FullReload(
        outcome=outcome,
        upstreams=upstreams,
        cards=cards,
        skills=skills,
        failures=tuple(failures),
    )


async def _upstreams(services: "Services", cause: Cause) -> Difference:
    servers = services.upstreams.servers
    before = {name: server.upstream for name, server in servers.items()}
    problems = await services.upstreams.reload(cause)
    after = {name: server.upstream for name, server in servers.items()}
    return Difference.between(before, after, problems)


async def _cards(shelf: "CardShelf", before: Mapping[str, str] | None) -> Difference:
    await shelf.reread()
    return Difference.between(before, shelf.own_hashes(), shelf.problems)


async def _folders(finder: "Finder", before: Mapping[str, Descriptor] | None) -> Difference:
    await finder.read_folders()
    return Difference.between(before, _skills(finder), finder.problems)


def _skills(finder: "Finder") -> dict[str, Descriptor] | None:
    if not finder.has_read_folders:
        return None
    return {one.id: one for one in finder.gathered.descriptors}
