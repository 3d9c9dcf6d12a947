"""What every store promises; `tests/contract` holds all of them to it.

An acknowledged write (the call returned) is durable, and every later read sees it. A write whose
caller was cancelled may or may not have happened. All methods raise `StoreError` when the store
itself cannot be read or written.
"""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self, Unpack

from remit.kernel.store.checks import PAGE_BYTES, PAGE_LIMIT
from remit.kernel.store.file_protocol import FileStore
from remit.kernel.store.records import (
    AgentRecord,
    AuditEntry,
    AuditHead,
    AuditPage,
    AuditRow,
    AuditVerdict,
    AuditWhere,
    BillBounds,
    BillDay,
    BillTurn,
    ClientKey,
    Mail,
    Review,
    ReviewPage,
    ReviewStatus,
    SessionRecord,
    StateEntry,
    StatePage,
    StateQuota,
    TokenRecord,
)
from remit.model.event import MAX_WAITING_BYTES


class StateStore(Protocol):
    """The shared state: JSON values under text keys."""

    async def state_get(self, key: str) -> StateEntry | None:
        """The entry under `key`, or None."""

    async def state_set(
        self,
        key: str,
        value: object,
        by: str,
        *,
        expect_version: int | None = None,
        quota: StateQuota | None = None,
    ) -> StateEntry:
        """Put `value` under `key` in the name of principal `by`.

        With `expect_version` only if the key still has that version; 0 means it must not exist.

        Raises:
            ConflictError: the version is another one; `details.version` tells it.
            InvalidDataError: the key or the value cannot be stored.
            LimitError: `by` would have written more of the state than `quota`, and more than now.
            TooLargeError: the value is beyond what any store takes.
        """

    async def state_delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Remove `key`; tells whether it was there.

        Raises:
            ConflictError: `expect_version` was given and the version is another one.
        """

    async def state_list(
        self,
        prefix: str = "",
        *,
        limit: int = PAGE_LIMIT,
        after: str = "",
        max_bytes: int = PAGE_BYTES,
    ) -> StatePage:
        """Entries whose key starts with `prefix`, in code point order, from behind `after`.

        A page ends after `limit` entries or before its values outgrow `max_bytes`, whichever is
        first; it holds at least one entry if there is one.
        """


class KeyStore(Protocol):
    """The public keys of clients. Secrets never come here."""

    async def key_add(self, name: str, public_key: str, profile: str) -> ClientKey:
        """Register a key; the name of a revoked key may be used again, its public key may not.

        Raises:
            ConflictError: a living key or agent has that name, or any ever had that public key.
            InvalidDataError: the name or the public key cannot be one.
        """

    async def key_revoke(self, name: str) -> ClientKey:
        """Revoke the living key of that name, and forget sessions, files and names of its holder.

        Raises:
            NotFoundError: no living key has that name.
        """

    async def key_get(self, name: str) -> ClientKey | None:
        """The living key of that name, or None."""

    async def key_list(self, *, include_revoked: bool = False) -> tuple[ClientKey, ...]:
        """All living keys by name; with the revoked ones, older before newer."""


class AgentStore(Protocol):
    """The agents that live, and the memory of every public key that agents had."""

    async def agent_add(self, record: AgentRecord) -> AgentRecord:
        """Keep a new agent, and give it its position whatever `record` says about that.

        Mail that still waits for somebody of that name is dropped: it was for another agent.

        Raises:
            ConflictError: a living agent or key has that name, or any ever had that public key.
            InvalidDataError: the id or the public key cannot be one.
        """

    async def agent_update(self, agent: str, *, profile: str, body: bytes) -> AgentRecord:
        """Change what may change of a living agent.

        Raises:
            NotFoundError: no living agent has that id.
        """

    async def agent_remove(self, agents: Sequence[str]) -> int:
        """Forget these agents, their mail, sessions, files and tool names; tells how many lived."""

    async def agent_list(self) -> tuple[AgentRecord, ...]:
        """All living agents by position."""


class EndedStore(Protocol):
    """The memory of those who are gone: ended agents, and clients whose key was revoked."""

    async def ended_list(self) -> tuple[str, ...]:
        """Their names, newest first; those of the oldest are forgotten.

        A name that was given again meanwhile is among them too.
        """


class SessionStore(Protocol):
    """What was opened to work in. The sessions of an agent or a client go when it does."""

    async def session_put(self, record: SessionRecord) -> None:
        """Keep a session, in the place of the one of that owner and name.

        Raises:
            InvalidDataError: the owner or the name cannot be one.
        """

    async def session_remove(self, sessions: Sequence[tuple[str, str]]) -> int:
        """Forget these, each an owner and a name, all at once; tells how many there were."""

    async def session_list(self) -> tuple[SessionRecord, ...]:
        """All sessions, by owner and name."""


class LessonStore(Protocol):
    """What use has taught, each lesson with a name and a body that means nothing here."""

    async def lesson_write(
        self, tenant: str, put: Mapping[str, bytes], removed: Sequence[str]
    ) -> None:
        """Keep and forget lessons of a tenant, all at once."""

    async def lesson_list(self, tenant: str) -> dict[str, bytes]:
        """All lessons of a tenant, by name."""


class MadeStore(Protocol):
    """Capabilities that were made at run time; the body is the runtime's own."""

    async def made_put(self, capability: str, body: bytes) -> None:
        """Keep a capability, in the place of the one of that id.

        Raises:
            InvalidDataError: the id cannot be one.
            TooLargeError: the body is beyond what any store takes.
        """

    async def made_remove(self, capability: str) -> bool:
        """Forget a capability; tells whether it was there."""

    async def made_list(self) -> dict[str, bytes]:
        """All of them, by id."""


class MailStore(Protocol):
    """Messages for agents that are away, each given out once or never.

    A caller that is cancelled in the middle of `mail_take` loses what it took: shield it.
    """

    async def mail_add(
        self, to: str, message: bytes, sender: str, expires_at: float,
        *, limit: int, max_bytes: int = MAX_WAITING_BYTES,
    ) -> int:  # fmt: skip
        """Keep a message, which is JSON, for `to`; answers its id, which grows.

        Raises:
            LimitError: `limit` living messages wait for `to` already, or with this one they would
                have more than `max_bytes`.
            InvalidDataError: the message is not JSON.
        """

    async def mail_take(
        self, to: str, *, now: float, limit: int = PAGE_LIMIT, max_bytes: int = PAGE_BYTES
    ) -> tuple[Mail, ...]:
        """Take the oldest messages out, without those that expired; empty when none wait.

        Answers at most `limit` messages, and fewer when they would outgrow `max_bytes`: ask again
        until nothing comes.
        """

    async def mail_count(self, to: str) -> int:
        """How many living messages wait for `to`."""

    async def mail_expire(self, now: float) -> int:
        """Drop every message that expired by `now`; tells how many."""


class AuditStore(Protocol):
    """The log of what mattered. It only grows, and each row vouches for the one before it."""

    async def audit_append(self, entry: AuditEntry, *, is_essential: bool = False) -> AuditRow:
        """Write an entry behind all others; an essential one also when the disk is full.

        Raises:
            InvalidDataError: the details are not a JSON object, or another field has no JSON.
            TooLargeError: the entry is beyond what the log takes.
        """

    async def audit_query(
        self, *, limit: int = PAGE_LIMIT, before: int | None = None, **where: Unpack[AuditWhere]
    ) -> AuditPage:
        """Rows that are like `where`, newest first, from in front of row `before`."""

    async def audit_verify(self, *, expected_head: str | None = None) -> AuditVerdict:
        """Prove the chain from its anchor to its end, or name the first broken row.

        A log that lost its newest rows while no daemon ran is whole in itself. `expected_head`, a
        head that was noted outside, must be somewhere in the chain, and so proves all before it.
        """

    async def audit_head(self) -> AuditHead | None:
        """What vouches for the end of the log from outside, if anything does."""

    async def audit_rotate(self, keep: int, archive: Callable[[Sequence[AuditRow]], None]) -> int:
        """Hand all but the newest `keep` rows to `archive`, then forget them; tells how many.

        `archive` is called in a thread, with one part after another, oldest first. If it raises,
        nothing is deleted. After a crash it may be handed the same rows again.

        Raises:
            ConflictError: a row that should go is broken; rotation would hide that.
        """


class ReviewStore(Protocol):
    """What waits for a person, and what they decided. Nothing is ever decided twice."""

    async def review_add(self, review: Review) -> Review:
        """Keep a review.

        Raises:
            ConflictError: there is one with that id.
            InvalidDataError: the payload is not JSON, or the status is none.
        """

    async def review_get(self, review: str) -> Review | None:
        """The review of that id, or None."""

    async def review_list(
        self,
        *,
        status: ReviewStatus | None = None,
        kind: str | None = None,
        limit: int = PAGE_LIMIT,
        after: str = "",
    ) -> ReviewPage:
        """Reviews, oldest first, from behind the one with id `after`.

        Raises:
            NotFoundError: there is no review `after`.
        """

    async def review_decide(
        self, review: str, status: ReviewStatus, by: str, note: str, now: float
    ) -> Review:
        """Decide what is pending.

        Raises:
            ConflictError: it is not pending any more, or too late to approve it.
            NotFoundError: there is none with that id.
        """


class BlobStore(Protocol):
    """A few large things by name, such as the last good configuration."""

    async def blob_put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, in the place of what was there.

        Raises:
            TooLargeError: more than 16 MiB.
        """

    async def blob_get(self, name: str) -> bytes | None:
        """What was put under `name`, or None."""


class TokenStore(Protocol):
    """Bearer tokens by their hashes. Those of a client or agent go with it."""

    async def token_add(self, record: TokenRecord) -> None:
        """Keep a token.

        Raises:
            ConflictError: that hash is there already.
        """

    async def token_remove(self, hashes: Sequence[str]) -> int:
        """Forget these; tells how many there were."""

    async def token_list(self) -> tuple[TokenRecord, ...]:
        """All tokens, older before newer."""


class NameStore(Protocol):
    """The tool names that somebody was shown. They go with it, and a newcomer begins anew."""

    async def name_add(self, owner: str, names: Mapping[str, str], *, limit: int) -> None:
        """Keep the names of events that `owner` has none for, all of them or none.

        Raises:
            ConflictError: it has a name for one of the events, or one of the names.
            InvalidDataError: the owner, an event or a name cannot be one.
            LimitError: there would be more than `limit` names of all owners together.
        """

    async def name_list(self, owner: str) -> dict[str, str]:
        """The names of `owner`, by event."""


class BillStore(Protocol):
    """What was put before models. It outlives an agent; a newcomer of that name begins anew."""

    async def bill_add(
        self, days: Sequence[BillDay], turns: Sequence[BillTurn], bounds: BillBounds
    ) -> None:
        """Add to the days that are kept, put the turns, and forget what is out of bounds.

        Raises:
            InvalidDataError: a principal cannot be one.
        """

    async def bill_sums(self, first_day: int) -> tuple[BillDay, ...]:
        """The days of everybody from a day on, added up by principal and kind; sorted."""

    async def bill_days(self, principal: str, first_day: int) -> tuple[BillDay, ...]:
        """The days of one from a day on, by day and kind."""

    async def bill_turns(self, principal: str, limit: int) -> tuple[BillTurn, ...]:
        """The latest turns of one, newest first."""


class Store(
    StateStore,
    KeyStore,
    AgentStore,
    EndedStore,
    SessionStore,
    FileStore,
    LessonStore,
    MadeStore,
    MailStore,
    AuditStore,
    ReviewStore,
    BlobStore,
    TokenStore,
    NameStore,
    BillStore,
    Protocol,
):
    """A store is open inside `async with`, and closing it finishes what was accepted.

    On a full disk it still takes rights away (`key_revoke`, `agent_remove`, `token_remove`,
    `made_remove`) and writes essential entries of the audit.
    """

    @property
    def is_full(self) -> bool:
        """Tell whether the disk is full, so that only what is essential is written."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
