"""Denials are counted before they are decided, and their repeats are counts instead of rows."""

from typing import Any

import pytest
from tests.fakes import Desk, built_in_handlers, texts
from tests.stores import TemporaryStore

from remit.errors import StoreError
from remit_client.wire import Answer

CATALOGUE = """
  base: {description: b, event_patterns: [system:health], always_included: true}
"""


class Full(TemporaryStore):
    """Takes no row while it is full."""

    full = False

    async def audit_append(self, *arguments: Any, **options: Any) -> Any:
        if self.full:
            raise StoreError("no space left")
        return await super().audit_append(*arguments, **options)


@pytest.fixture
def store() -> Full:
    return Full()


@pytest.fixture
def desk(store: Full) -> Desk:
    limited = "limits: {max_calls_per_minute: 10}\n"
    return Desk(built_in_handlers(), texts(CATALOGUE, free="", limited=limited), store=store)


async def rows(desk: Desk, **where: Any) -> list[dict[str, Any]]:
    """Rows of the audit, oldest first."""
    page = await desk.ask("operator", "audit:query", {"outcome": "denied", "limit": 500} | where)
    return list(reversed(page["items"]))


async def refused(desk: Desk, who: str, event: str) -> Answer:
    answer = await desk.answer(who, event)
    assert answer.error is not None
    return answer


async def test_repeats_of_a_denial_are_one_row_with_their_count(desk: Desk) -> None:
    answers = [await refused(desk, "free", "state:set") for _ in range(50)]
    (first,) = await rows(desk)
    await desk.kernel.audit_log.denials.flush()
    again, repeats = await rows(desk)
    assert again == first
    assert (first["count"], repeats["count"]) == (1, 49)
    assert repeats["details"] == {"count": 49, "first_at": 0.0, "last_at": 0.0}
    assert {(row["principal"], row["event"], row["reason"]) for row in (first, repeats)} == {
        ("ann", "state:set", "no_grant")
    }
    assert {answer.decision for answer in answers} == {first["decision"]}
    assert repeats["decision"] == first["decision"]
    assert (await desk.ask("operator", "audit:verify"))["ok"]


async def test_another_event_is_another_denial(desk: Desk) -> None:
    for event in ("state:set", "state:get", "state:set", "no:such"):
        await refused(desk, "free", event)
    assert [row["event"] for row in await rows(desk)] == ["state:set", "state:get", "no:such"]


async def test_a_window_without_a_repeat_ends_the_count(desk: Desk) -> None:
    denials = desk.kernel.audit_log.denials
    for _ in range(2):
        await refused(desk, "free", "state:set")
        await refused(desk, "free", "state:set")
        await denials.flush()
        await denials.flush()
    assert [row["count"] for row in await rows(desk)] == [1, 1, 1, 1]
    assert len({row["decision"] for row in await rows(desk)}) == 2


async def test_a_call_that_is_refused_counts_against_the_calls_of_a_minute(desk: Desk) -> None:
    codes = [(await refused(desk, "limited", f"secret:n{number}")).error for number in range(200)]
    assert [error.code for error in codes if error] == ["denied"] * 10 + ["limit_exceeded"] * 190
    await desk.kernel.audit_log.denials.flush()
    found = await rows(desk)
    assert len(found) == 12
    assert sum(row["count"] for row in found) == 200
    over = found[-1]
    assert (over["reason"], over["details"]["limit"]) == ("limit", "max_calls_per_minute")
    assert len(over["details"]["asked"]) == 16
    assert sum(over["details"]["asked"].values()) + over["details"]["others"] == 189
    assert (await desk.answer("limited", "system:health")).error is not None


async def test_who_has_no_limits_has_a_bound_on_denials_and_keeps_its_rights(desk: Desk) -> None:
    errors = [(await refused(desk, "free", f"secret:n{number}")).error for number in range(700)]
    codes = [error.code for error in errors if error]
    assert codes == ["denied"] * 600 + ["limit_exceeded"] * 100
    last = errors[-1]
    assert last is not None
    assert last.details == {"limit": "denials_per_minute", "retry_after": 0.1}
    assert (await desk.answer("free", "system:health")).ok
    stats = await desk.ask("operator", "system:stats")
    assert (stats["denied"], stats["denied_repeats"]) == (700, 99)


async def test_what_cannot_be_written_is_counted_and_written_later(desk: Desk, store: Full) -> None:
    denials = desk.kernel.audit_log.denials
    store.full = True
    for _ in range(3):
        await refused(desk, "free", "state:set")
    await denials.flush()
    await refused(desk, "free", "state:set")
    store.full = False
    assert await rows(desk) == []
    await denials.flush()
    (row,) = await rows(desk)
    assert row["count"] == 4
