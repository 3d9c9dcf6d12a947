"""bill:* — what was put before models, in tokens."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from remit.kernel.dispatch.bills import TURN, TURNS, BillDay, BillTurn
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import unknown_agent
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, Name, page

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
_DAY = 86_400
_LATEST = 20


@event_handler("bill:query", capability="own_runtime", effect="read")
async def query(
    ctx: Context,
    agent: Name | None = None,
    since: float | None = None,
    limit: Limit = PAGE_LIMIT,
    after: Key = "",
) -> dict[str, Any]:
    """Tell how many tokens were put before your model, and how many everything would have cost.

    Whoever sees everything asks about everybody, others about themselves.

    Args:
        agent: one agent or client, day by day and with its latest turns; all of them when absent.
        since: nothing before the day of this time, in seconds since 1970; 30 days at the most.
        limit: how many agents at the most.
        after: the `next` of the page before.
    """
    bills = ctx.kernel.bills
    first = bills.first_day(since)
    head = {"since": first * _DAY}
    if agent is None and not ctx.sees_everything:
        agent = ctx.principal.id
    if agent is None:
        sums: dict[str, list[BillDay]] = {}
        for row in await bills.sums(first):
            sums.setdefault(row.principal, []).append(row)
        return (
            page(sorted(sums), lambda name: _sum(name, sums[name]), limit=limit, after=after) | head
        )
    if agent != ctx.principal.id and not ctx.sees_everything:
        raise unknown_agent(agent)
    days = await bills.days(agent, first)
    if not days and ctx.kernel.keyring.principal(agent) is None:
        raise unknown_agent(agent)
    turns = await bills.turns(agent, TURNS)
    shown = [turn for turn in turns if turn.at >= first * _DAY]
    return {
        "items": [_sum(agent, days) | _closer(days, shown)],
        "total": 1,
        "next": None,
        **head,
    }


def _sum(name: str, rows: Iterable[BillDay]) -> dict[str, Any]:
    kinds: dict[str, dict[str, int]] = {}
    turns = 0
    for row in rows:
        if row.kind == TURN:
            turns += row.count
            continue
        kind = kinds.setdefault(row.kind, {"count": 0, "sent": 0, "full_dump": 0})
        for field in kind:
            kind[field] += getattr(row, field)
    return {
        "agent": name,
        "turns": turns,
        "sent": sum(kind["sent"] for kind in kinds.values()),
        "full_dump": sum(kind["full_dump"] for kind in kinds.values()),
        "kinds": dict(sorted(kinds.items())),
    }


def _closer(days: Iterable[BillDay], turns: list[BillTurn]) -> dict[str, Any]:
    """Day by day, and the latest turns."""
    by_day: dict[int, list[BillDay]] = {}
    for row in days:
        by_day.setdefault(row.day, []).append(row)
    return {
        "days": [
            {
                "day": datetime.fromtimestamp(day * _DAY, UTC).date().isoformat(),
                "turns": sum(row.count for row in rows if row.kind == TURN),
                "sent": sum(row.sent for row in rows),
                "full_dump": sum(row.full_dump for row in rows),
            }
            for day, rows in sorted(by_day.items())
        ],
        "latest": [
            {"at": one.at, "sent": one.sent, "full_dump": one.full_dump, "kinds": one.kinds}
            for one in turns[:_LATEST]
        ],
    }
