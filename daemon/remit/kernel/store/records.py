"""What the store keeps, as plain values. Times are seconds since the epoch."""

from typing import Any, Literal, TypedDict

import msgspec

from remit.model.event import Service


class StateEntry(msgspec.Struct, frozen=True):
    """One key of the shared state.

    `version` grows with every change of the key, and a key that was deleted and made again never
    repeats one, so a version that was read once stands for exactly one value.
    """

    key: str
    value: Any
    version: int
    updated_at: float
    updated_by: str


class StatePage(msgspec.Struct, frozen=True):
    """Some entries in the order of their keys.

    `total` counts all entries under the prefix; `next` is the cursor to go on with, or None at the
    end.
    """

    items: tuple[StateEntry, ...]
    total: int
    next: str | None = None


class StateQuota(msgspec.Struct, frozen=True):
    """How much of the shared state is, or may be, somebody's: what it wrote last. None: any.

    `bytes` are those of keys and values.
    """

    keys: int | None = None
    bytes: int | None = None


class ClientKey(msgspec.Struct, frozen=True):
    """A public key that may connect, and the profile its holder was given."""

    name: str
    public_key: str
    profile: str
    created_at: float
    revoked_at: float | None = None

    @property
    def is_living(self) -> bool:
        """Tell whether this key still opens the door."""
        return self.revoked_at is None


class AgentRecord(msgspec.Struct, frozen=True):
    """An agent as a restart needs it.

    `position` is given by the store: it grows with every agent and is never given twice. `body` is
    the runtime's own and means nothing here.
    """

    id: str
    parent: str | None
    position: int
    profile: str
    public_key: str
    token_hash: str
    created_at: float
    body: bytes


class SessionRecord(msgspec.Struct, frozen=True):
    """A session as a restart needs it; `body` is the runtime's own and means nothing here."""

    owner: str
    name: str
    body: bytes


class FileLimits(Service, msgspec.Struct, frozen=True, kw_only=True):
    """How much one session may keep; `areas` is how many sessions of one owner may keep files."""

    size: int = 524_288
    count: int = 10_000
    total: int = 33_554_432
    areas: int = 50


class FileInfo(msgspec.Struct, frozen=True):
    """A file of a session without its content."""

    path: str
    size: int
    created_at: float
    updated_at: float


class StoredFile(msgspec.Struct, frozen=True):
    """A file of a session."""

    info: FileInfo
    content: bytes


class Mail(msgspec.Struct, frozen=True):
    """A message for an agent that was away; `message` is JSON."""

    id: int
    to: str
    sender: str
    message: bytes
    sent_at: float
    expires_at: float


ReviewStatus = Literal["pending", "approved", "rejected", "expired"]


class Review(msgspec.Struct, frozen=True):
    """Something a person has to decide; `payload` is JSON and shows them what."""

    id: str
    kind: str
    subject: str
    requested_by: str
    requested_at: float
    expires_at: float | None
    payload: bytes
    status: ReviewStatus = "pending"
    decided_by: str = ""
    decided_at: float | None = None
    note: str = ""


class ReviewPage(msgspec.Struct, frozen=True):
    """Some reviews, oldest first; `next` is the cursor to go on with, or None at the end."""

    items: tuple[Review, ...]
    next: str | None = None


class TokenRecord(msgspec.Struct, frozen=True):
    """A bearer token: whose it is, where it counts and until when. The token itself is not kept."""

    hash: str
    owner: str
    owner_key: str
    """The public key that the owner had: a later principal of the same name is not the owner."""
    audience: str
    created_at: float
    expires_at: float


class AuditEntry(msgspec.Struct, frozen=True):
    """Something that mattered, as it is told to the log; `details` is a JSON object."""

    at: float
    principal: str
    event: str
    outcome: str
    reason: str
    decision: str
    revision: int
    origin: str = ""
    details: bytes = b"{}"


class AuditRow(msgspec.Struct, frozen=True):
    """An entry in its place in the chain: `hash` covers the entry, `seq` and `previous`."""

    seq: int
    entry: AuditEntry
    previous: str
    hash: str


class AuditWhere(TypedDict, total=False):
    """What rows of the log must be like. None asks nothing, times are inclusive."""

    principal: str | None
    event: str | None  # one name, or the start of many and a '*'
    reason: str | None
    outcome: str | None
    decision: str | None
    since: float | None
    until: float | None


class AuditPage(msgspec.Struct, frozen=True):
    """Some rows, newest first; `next` is the cursor to go on with, or None at the end."""

    items: tuple[AuditRow, ...]
    next: int | None = None


class AuditVerdict(msgspec.Struct, frozen=True):
    """Whether the chain is whole.

    `rows` were proved before the end or the first broken row, which is `first_bad`; `problem` says
    what is wrong with it. `head` is the hash of the newest proved row: note it elsewhere, and a
    log that was cut off later can be told.
    """

    ok: bool
    rows: int
    first_bad: int | None
    problem: str
    head: str
    anchor: tuple[int, str] = (0, "")
    """The row, and its hash, behind which the log begins: archives must reach it."""


class AuditHead(msgspec.Struct, frozen=True):
    """What vouches for the end of the log from outside of it.

    The log had a row `seq` with `hash`. Archives begin behind row `base`, with its hash. A head is
    kept since row `since`: nobody vouches for what was cut off before. `problem` says what does not
    agree with all that.
    """

    seq: int
    hash: str
    base: tuple[int, str]
    problem: str = ""
    since: int = 0


class BillDay(msgspec.Struct, frozen=True):
    """What one kind of text cost somebody on a day, in tokens."""

    principal: str
    day: int
    """Since 1970, in UTC."""
    kind: str
    count: int
    sent: int
    full_dump: int
    """What everything would have cost in its place."""


class BillTurn(msgspec.Struct, frozen=True):
    """What somebody was shown for one request, in tokens."""

    principal: str
    number: int
    """Grows with time: microseconds since 1970, or one more than the turn before."""
    at: float
    sent: int
    full_dump: int
    kinds: dict[str, int]


class BillBounds(msgspec.Struct, frozen=True):
    """What is kept of bills; the oldest goes first."""

    first_day: int
    first_turn: int
    turns_of_one: int
    rows: int
    """Days, and turns, of everybody together."""
