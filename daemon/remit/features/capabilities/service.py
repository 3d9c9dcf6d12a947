"""Capabilities that are made, changed and removed while the daemon runs, and kept over a restart.

Each change is a new revision, with a plan and a line in the audit, as an edited file is. What is
made is checked against what its author holds; `policy/delegate.py` checks it again at every
decision.
"""

from collections.abc import Callable

import anyio
import msgspec
import structlog

from remit.errors import (
    ConflictError,
    DefinitionError,
    InvalidDataError,
    LimitError,
    NotFoundError,
    StoreError,
)
from remit.kernel.authority.revision import Authority
from remit.kernel.authority.standing import UNREADABLE, runtime_capability_of
from remit.kernel.dispatch.context import Kernel
from remit.kernel.feature import Setup, Startup
from remit.kernel.reload.full_reload import Outcome
from remit.kernel.reload.reload import Reloader
from remit.kernel.store.rows import Rows, check_size, check_text
from remit.model.capability import (
    RuntimeCapability,
    RuntimeDefinition,
    RuntimeVersion,
    definition_hash,
)
from remit.model.event import Service
from remit.model.principal import Cause
from remit.policy.catalogue import Catalogue

log = structlog.get_logger()
MAX_BY_ONE = 50
"""Capabilities that one author may have."""
MAX_IN_ALL = 1_000

Made = tuple[RuntimeCapability, ...]
_PUT = """
INSERT INTO made_capability (id, body) VALUES (?, ?)
ON CONFLICT (id) DO UPDATE SET body = excluded.body
"""


class RuntimeCapabilityRows(Rows):
    """Capabilities that were made at run time; the body is a `RuntimeCapability`."""

    async def capability_put(self, capability: str, body: bytes) -> None:
        """Keep a capability, in the place of the one of that id.

        Raises:
            InvalidDataError: the id cannot be one.
            TooLargeError: the body is beyond what any store takes.
        """
        _check_made(capability, body)
        await self.database.write(
            lambda connection: connection.execute(_PUT, (capability, body)).rowcount
        )

    async def capability_remove(self, capability: str) -> bool:
        """Forget a capability; tells whether it was there."""
        _check_made(capability)
        query = "DELETE FROM made_capability WHERE id = ?"
        return bool(
            await self.database.write(
                lambda connection: connection.execute(query, (capability,)).rowcount,
                is_essential=True,
            )
        )

    async def capability_list(self) -> dict[str, bytes]:
        """All of them, by id."""
        query = "SELECT id, body FROM made_capability ORDER BY id"
        return await self.database.read(lambda connection: dict(connection.execute(query)))


def _check_made(capability: str, body: bytes = b"") -> None:
    """Refuse what is no id of a capability, and a body beyond what any store takes."""
    check_text(capability, "$.id")
    if not capability or "\0" in capability:
        raise InvalidDataError("a capability needs an id", details={"path": "$.id"})
    check_size(body, "$.body")


async def load_made(store: RuntimeCapabilityRows) -> Made:
    """What was made before, by id; one that cannot be read is left out, and gives nothing."""
    found = []
    for name, body in (await store.capability_list()).items():
        try:
            found.append(runtime_capability_of(body))
        except UNREADABLE:
            log.exception("runtime_capability_damaged", capability=name)
    return tuple(found)


class RuntimeCapabilities(Service):
    """Makes, changes and removes, one after the other."""

    def __init__(
        self,
        store: RuntimeCapabilityRows,
        authority: Authority,
        reloader: Reloader,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._authority = authority
        self._reloader = reloader
        self._clock = clock
        self._changing = anyio.Lock()

    def get(self, name: str) -> RuntimeCapability | None:
        """What was made under an id, or None."""
        return next((one for one in self._authority.current.made if one.id == name), None)

    async def create(
        self, name: str, author: str, definition: RuntimeDefinition, cause: Cause
    ) -> tuple[RuntimeCapability, Outcome]:
        """Put a new capability in force.

        Raises:
            ConflictError: the name is taken.
            LimitError: there are too many.
            StoreError: it cannot be kept.
        """
        async with self._changing:
            self._check_room(name, author)
            found = self._authority.fleet.get(author)
            made = RuntimeCapability(
                id=name,
                author=author,
                author_key="" if found is None else found.public_key,
                versions=(),
            )
            return await self._put(made, definition, cause)

    async def update(
        self,
        made: RuntimeCapability,
        definition: RuntimeDefinition,
        cause: Cause,
        *,
        expect: int | None = None,
    ) -> tuple[RuntimeCapability, Outcome]:
        """Put another version of a capability in force.

        Raises:
            ConflictError: it was changed meanwhile, or a profile does not fit it any more.
            NotFoundError: it was removed meanwhile.
            StoreError: it cannot be kept.
        """
        async with self._changing:
            present = self._present(made)
            if expect is not None and present.latest.number != expect:
                raise ConflictError(
                    f"{made.id!r} has version {present.latest.number}, expected {expect}",
                    hint="look at it again and repeat the change on what is there now",
                    details={"version": present.latest.number, "expected": expect},
                )
            known = definition_hash(present.id, present.latest.definition)
            if definition_hash(present.id, definition) == known:
                revision = self._authority.catalogue.revision
                return present, Outcome(changed=False, revision=revision)
            return await self._put(present, definition, cause)

    async def remove(
        self, made: RuntimeCapability, users: Callable[[], str], cause: Cause
    ) -> Outcome:
        """Take a capability away that nobody uses.

        Args:
            made: the capability.
            users: tells who uses it now; empty when nobody does.
            cause: who wants it.

        Raises:
            ConflictError: somebody uses it.
            NotFoundError: it was removed meanwhile.
            StoreError: it would come back at the next start.
        """
        async with self._changing:
            present = self._present(made)
            used = users()
            if used:
                hint = "take it out of these first"
                raise ConflictError(f"{made.id!r} is used by {used}", hint=hint)
            with anyio.CancelScope(shield=True):
                await self._store.capability_remove(made.id)
                try:
                    outcome = await self._change(
                        lambda all_: tuple(one for one in all_ if one.id != made.id), cause
                    )
                except BaseException:
                    await self._take_back(present)
                    raise
        return outcome

    async def _put(
        self, made: RuntimeCapability, definition: RuntimeDefinition, cause: Cause
    ) -> tuple[RuntimeCapability, Outcome]:
        """Keep it and put it in force, or neither."""
        number = made.latest.number + 1 if made.versions else 1
        fingerprint = definition_hash(made.id, definition)
        changed = made.changed(
            RuntimeVersion(number, definition, fingerprint, cause.by, self._clock())
        )
        with anyio.CancelScope(shield=True):
            await self._store.capability_put(made.id, msgspec.msgpack.encode(changed))
            try:
                outcome = await self._change(
                    lambda all_: (*(one for one in all_ if one.id != made.id), changed), cause
                )
            except BaseException:
                await self._take_back(made)
                raise
        return changed, outcome

    async def _take_back(self, made: RuntimeCapability) -> None:
        try:
            if made.versions:
                await self._store.capability_put(made.id, msgspec.msgpack.encode(made))
            else:
                await self._store.capability_remove(made.id)
        except StoreError as error:  # the caller hears of the first failure; this one is logged
            log.warning("runtime_capability_not_undone", capability=made.id, problem=error.message)

    async def _change(self, change: Callable[[Made], Made], cause: Cause) -> Outcome:
        try:
            return await self._reloader.change_made(change, cause)
        except DefinitionError as error:
            problems = "; ".join(f"{one.place}: {one.message}" for one in error.problems[:10])
            log.warning("runtime_capability_refused", problem=problems, decision=cause.decision)
            message = "a profile in force does not fit that"
            raise ConflictError(message, hint="the daemon's log says which") from error

    def _present(self, made: RuntimeCapability) -> RuntimeCapability:
        found = self.get(made.id)
        if found is None or (found.author, found.author_key) != (made.author, made.author_key):
            raise NotFoundError(f"there is no capability {made.id!r}")
        return found

    def is_free(self, name: str) -> bool:
        """Tell whether a new capability may have this id."""
        made = self._authority.current.made
        is_made = any(one.id == name for one in made)
        return not is_made and not is_taken(self._authority.catalogue, name)

    def _check_room(self, name: str, author: str) -> None:
        made = self._authority.current.made
        if not self.is_free(name):
            message = f"the name {name!r} is taken"
            raise ConflictError(message, hint="choose another one", details={"id": name})
        if sum(one.author == author for one in made) >= MAX_BY_ONE or len(made) >= MAX_IN_ALL:
            raise LimitError(
                f"{MAX_BY_ONE} capabilities of one author, or {MAX_IN_ALL:,} in all, are the limit",
                hint="remove one that nobody uses",
                details={"limit": "capabilities", "retry_after": None},
            )


def is_taken(catalogue: Catalogue, name: str) -> bool:
    """Tell whether files, or a handler that waits for its definition, use a name already."""
    specs = catalogue.universe.specs.values()
    return name in catalogue.names or any(spec.capability == name for spec in specs)


async def _restore(startup: Startup) -> None:
    startup.capabilities = await load_made(RuntimeCapabilityRows(startup.database))


def _build(kernel: Kernel, _startup: Startup) -> None:
    clock = kernel.wall_clock
    kernel.provide(
        RuntimeCapabilities(
            RuntimeCapabilityRows(kernel.database), kernel.authority, kernel.reloader, clock
        )
    )


SETUP = Setup(restore=_restore, build=_build)
