"""Rows for tests of stores, and a store whose clock stands still."""

import msgspec
from tests.stores import SqliteStore

from remit.kernel.audit.chain import AuditEntry
from remit.kernel.store.records import AgentRecord, Review

NOW = 1_700_000_000.0


def make_store(folder: str) -> SqliteStore:
    """A store in that folder; it is open inside of `async with`."""
    return SqliteStore(f"{folder}/remit.db", clock=lambda: NOW)


def public_key(number: int) -> str:
    return f"{number:040d}"


def agent(name: str, number: int = 1, *, parent: str | None = None) -> AgentRecord:
    return AgentRecord(name, parent, 0, "worker", public_key(number), "hash", NOW, b"body")


def audit_entry(number: int = 0, **changes: object) -> AuditEntry:
    entry = AuditEntry(
        at=NOW + number,
        principal="agent-1",
        event="state:set",
        outcome="denied",
        reason="not_granted",
        decision=f"boot-{number:x}",
        revision=1,
    )
    return msgspec.structs.replace(entry, **changes)


def review(name: str, **changes: object) -> Review:
    asked = Review(
        id=name,
        kind="approval",
        subject="agent:spawn",
        requested_by="agent-1",
        requested_at=NOW,
        expires_at=None,
        payload=b"{}",
    )
    return msgspec.structs.replace(asked, **changes)
