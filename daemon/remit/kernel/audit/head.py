"""The head of the audit log, kept outside of the database under a MAC of the server's key.

A log that lost its newest rows is whole in itself. So the number and the hash of the newest row lie
in a file beside the database, with a keyed BLAKE2b whose key is derived from the server's secret
key: nobody can make one without that key, and whoever has it can make any.

The file is written after each commit that added rows, and before anybody is answered. So it is
never ahead of the table, and a kill leaves it behind by the last commit at the most. It is forced
to the disk once a second while rows come, so a power failure leaves it behind by about a second. A
daemon that ends well says so in it: then the log ends exactly there. What is found wrong stays in
the file until an operator accepts it.
"""

import os
import time
from collections.abc import Callable
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Protocol

import msgspec

from remit.errors import StoreError
from remit.kernel.audit.chain import GENESIS, AuditHead, Place

SIZE = 2048
"""Bytes of the file: it never grows, so a full disk does not keep it from being written."""
MOST_SECONDS_BEHIND = 10.0
_MOST_TEXT = 300
_SYNC_SECONDS = 1.0
_PERSON = b"remit.audit.head"


class Head(msgspec.Struct, frozen=True):
    """The content of the file.

    The newest row is `seq` with `hash`. `is_closed` means that no row came behind it while it was
    written. Archives must begin behind row `base_seq`, whose hash is `base_hash`. Heads are kept
    since row `since`.
    """

    seq: int = 0
    hash: str = GENESIS
    is_closed: bool = False
    base_seq: int = 0
    base_hash: str = GENESIS
    problem: str = ""
    since: int = 0


class _Signed(msgspec.Struct, frozen=True):
    mac: str
    head: msgspec.Raw


class Log(Protocol):
    """The table, as far as a head is compared with it."""

    def anchor(self) -> Place:
        """The last row that was rotated away."""

    def newest(self) -> Place:
        """The newest row, or the anchor."""

    def hash_of(self, seq: int) -> str | None:
        """The hash of a row, if it is there."""

    def seconds_behind(self, seq: int) -> float:
        """The time between the first and the last row behind row `seq`."""


class HeadFile:
    """The file: one line of a fixed size, written in its place."""

    def __init__(self, path: Path, secret: str) -> None:
        self.path = path
        # The secret key of CURVE signs nothing: a key of its own comes of it.
        self._key = blake2b(key=secret.encode(), person=_PERSON, digest_size=32).digest()
        self._descriptor: int | None = None

    def read(self) -> Head | None:
        """What it says; None when there is none.

        Raises:
            StoreError: it is not what this server wrote.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error
        try:
            data = os.read(descriptor, SIZE + 1)
        finally:
            os.close(descriptor)
        try:
            signed = msgspec.json.decode(data, type=_Signed)
            is_ours = compare_digest(signed.mac, self._mac(bytes(signed.head)))
            head = msgspec.json.decode(signed.head, type=Head)
        except (msgspec.MsgspecError, UnicodeError, TypeError) as error:
            raise _forged(self.path) from error
        if not is_ours:
            raise _forged(self.path)
        return head

    def write(self, head: Head) -> None:
        """Say something else."""
        if self._descriptor is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o600)
        body = msgspec.json.encode(head)
        line = b'{"mac":"%b","head":%b}' % (self._mac(body).encode(), body)
        os.pwrite(self._descriptor, line.ljust(SIZE - 1) + b"\n", 0)

    def sync(self) -> None:
        """Force it to the disk."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _mac(self, body: bytes) -> str:
        return blake2b(body, key=self._key, digest_size=32).hexdigest()


class HeadTracker:
    """Keeps the file in step with a log that grows; only the thread that writes may use it."""

    def __init__(self, file: HeadFile, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._head = Head()
        self._next_sync = 0.0
        self._trouble = ""
        self._is_kept = False

    def begin(self, log: Log, *, is_first: bool) -> None:
        """Compare the file with the log as it was found, and go on from there.

        Args:
            log: the table.
            is_first: whether no head can have been kept before.
        """
        found, problem = read_head(self._file)
        if found is None and not problem and not is_first:
            problem = f"{self._file.path} is missing: what the log must end with is not known"
        # Without a head there is nothing to compare, but for the word that it is gone.
        seq, digest = log.newest()
        found = found or Head(seq, digest, since=seq)
        problem = found.problem or problem or head_problem(found, log)
        self._head = msgspec.structs.replace(
            found, seq=seq, hash=digest, is_closed=False, problem=problem[:_MOST_TEXT]
        )
        self._is_kept = True
        self._write(is_forced=True)

    def advance(self, newest: Place) -> None:
        """Note the newest row after a commit."""
        if newest != (self._head.seq, self._head.hash):
            seq, digest = newest
            self._head = msgspec.structs.replace(self._head, seq=seq, hash=digest)
            self._write()

    def confirm(self, log: Log) -> None:
        """Look whether the log still holds the newest row, where nobody remembers it."""
        head = self._head
        if head.problem or not self._is_kept:
            return
        first, digest = log.anchor()
        found = digest if head.seq == first else log.hash_of(head.seq)
        if found != head.hash:
            problem = f"row {head.seq} was cut off or replaced while a daemon ran"
            self._head = msgspec.structs.replace(head, problem=problem)

    def end(self) -> None:
        """Say that no row comes any more."""
        self._head = msgspec.structs.replace(self._head, is_closed=True)
        self._write(is_forced=True)
        self._file.close()

    def accept(self, base: Place | None) -> None:
        """Forget what was wrong; with `base` archives begin behind it from now on."""
        seq, digest = base or (self._head.base_seq, self._head.base_hash)
        self._head = msgspec.structs.replace(self._head, problem="", base_seq=seq, base_hash=digest)
        self._write(is_forced=True)

    def report(self) -> AuditHead:
        """What the file says now, and whether it is what was written last."""
        found, problem = read_head(self._file)
        if not problem and found != self._head:
            problem = self._trouble or (
                f"{self._file.path} is missing or not the one that this daemon wrote last"
            )
        return told(self._head, self._head.problem or problem)

    def _write(self, *, is_forced: bool = False) -> None:
        try:
            self._file.write(self._head)
            now = self._clock()
            if is_forced or now >= self._next_sync:
                self._next_sync = now + _SYNC_SECONDS
                self._file.sync()
        except OSError as error:
            # Behind, and never wrong: the row itself is on the disk.
            self._trouble = f"{self._file.path} cannot be written: {error.strerror}"


def read_head(file: HeadFile) -> tuple[Head | None, str]:
    """What the file says, or why it cannot be believed."""
    try:
        return file.read(), ""
    except StoreError as error:
        return None, error.message


def head_problem(head: Head, log: Log) -> str:
    """What the head tells about the log as it was found; empty when they agree."""
    (first, anchor), (newest, _) = log.anchor(), log.newest()
    if head.seq > newest:
        return f"rows {newest + 1} to {head.seq} are missing: the newest rows were cut off"
    if head.seq < first:
        return f"the head is older than the log: it vouches for row {head.seq}, long rotated away"
    found = anchor if head.seq == first else log.hash_of(head.seq)
    if found != head.hash:
        return f"row {head.seq} is another one than the head vouches for: rows were replaced"
    if newest > head.seq and (head.is_closed or log.seconds_behind(head.seq) > MOST_SECONDS_BEHIND):
        return f"nobody vouches for rows {head.seq + 1} to {newest}: the head is an older one"
    return ""


def told(head: Head, problem: str) -> AuditHead:
    """The head, for whoever proves the log."""
    return AuditHead(head.seq, head.hash, (head.base_seq, head.base_hash), problem, head.since)


def _forged(path: Path) -> StoreError:
    return StoreError(f"{path} was edited, or written with another server key")
