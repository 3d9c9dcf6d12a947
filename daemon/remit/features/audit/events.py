"""audit:* — what was decided, and what came of it."""

from typing import Annotated, Any

import msgspec

from remit.kernel.audit.chain import AuditRow, AuditWhere
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import unknown_agent
from remit.kernel.store.rows import shown_object
from remit.model.event import decisions_of
from remit.model.schema import Name, whole

Limit = Annotated[int, msgspec.Meta(ge=1, le=500)]
Head = Annotated[str, whole("[0-9a-f]{64}", most=64)]

_MOST_PAGES = 50
"""How far one query looks through rows that are not for the caller; it then goes on from there."""


@event_handler("audit:query", capability="audit_read", effect="read", wildcard=False)
async def query(  # noqa: PLR0913 - each filter is one field
    ctx: Context,
    *,
    agent: Name | None = None,
    event: Name | None = None,
    reason: Name | None = None,
    outcome: Name | None = None,
    decision: Name | None = None,
    since: float | None = None,
    until: float | None = None,
    limit: Limit = 100,
    before: int | None = None,
) -> dict[str, Any]:
    """Look up what was decided, newest first: of everybody, or of yourself and your agents.

    Args:
        agent: only what this agent asked for.
        event: only this event, or all that start with what stands before a '*'.
        reason: only decisions with this reason.
        outcome: only allowed, denied, waiting, lapsed or failed.
        decision: only the decision with this id.
        since: nothing before this time, in seconds since 1970.
        until: nothing after this time.
        limit: how many at the most.
        before: the `next` of the page before.
    """
    if agent is not None and not _may_look_at(ctx, agent):
        raise unknown_agent(agent, "look at")
    where = AuditWhere(
        principal=agent,
        event=event,
        reason=reason,
        outcome=outcome,
        decision=decision,
        since=since,
        until=until,
    )
    rows, cursor = await _page(ctx, where, limit, before)
    return {"items": [_shown(row) for row in rows], "next": cursor}


def _may_look_at(ctx: Context, agent: str) -> bool:
    fleet = ctx.kernel.authority.fleet
    return ctx.principal.is_operator or fleet.is_under(agent, ctx.principal.id)


async def _page(
    ctx: Context, where: AuditWhere, limit: int, before: int | None
) -> tuple[list[AuditRow], int | None]:
    rows = ctx.kernel.audit_log.rows
    found: list[AuditRow] = []
    for _ in range(_MOST_PAGES):
        page = await rows.audit_query(limit=limit - len(found), before=before, **where)
        found += [row for row in page.items if _may_see(ctx, row)]
        before = page.next
        if before is None or len(found) >= limit or ctx.principal.is_operator:
            break
    return found, before


def _may_see(ctx: Context, row: AuditRow) -> bool:
    """Tell whether a row is the caller's business, and not that of an earlier agent of the name."""
    if ctx.principal.is_operator:
        return True
    name = row.entry.principal
    agent = ctx.kernel.authority.fleet.get(name)
    return agent is not None and _may_look_at(ctx, name) and row.entry.at >= agent.created_at


def _shown(row: AuditRow) -> dict[str, Any]:
    details = shown_object(row.entry.details)
    fields = msgspec.structs.asdict(row.entry) | {"details": details}
    count = decisions_of(row.entry.outcome, details)
    return {"seq": row.seq, **fields, "count": count, "previous": row.previous, "hash": row.hash}


@event_handler("audit:verify", capability="audit_read", effect="read", wildcard=False, timeout=600)
async def verify(ctx: Context, head: Head | None = None) -> dict[str, Any]:
    """Prove that nobody changed the audit, or name the first row that is broken.

    Args:
        head: a hash that was noted earlier; it must be one of the rows.
    """
    return await ctx.kernel.audit_log.verify(head)


@event_handler("audit:entry", capability="audit_read", effect="read", wildcard=False, pushed=True)
def entry(  # noqa: PLR0913 - the columns of an entry
    *,
    seq: int,
    at: float,
    principal: str,
    event: str,
    outcome: str,
    reason: str,
    decision: str,
    revision: int,
    origin: str,
    details: dict[str, Any],
    count: int,
) -> None:
    """A row of the audit, as soon as it is durable.

    Args:
        seq: its number in the chain.
        at: when.
        principal: who asked.
        event: for what.
        outcome: allowed, denied, waiting, lapsed or failed.
        reason: why.
        decision: the id of the decision; the answer carries it too.
        revision: the revision that decided.
        origin: where the request came from.
        details: what else is known.
        count: how many decisions it stands for; repeats of a denial become one row.
    """
