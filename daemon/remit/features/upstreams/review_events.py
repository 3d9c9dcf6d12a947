"""Reviews of upstream tools, for those who see everything.

Whoever decides what every agent may be shown must not be an agent that sees only its own part.
"""

from typing import Any, Literal

import msgspec

from remit.errors import NotFoundError
from remit.kernel.dispatch.context import Context
from remit.kernel.store.records import ReviewStatus
from remit.model.event import Effect
from remit.model.principal import Cause
from remit.model.requests import BODY_BYTES

TOOL = "tool"
_MOST = 200
_STATUS: dict[ReviewStatus, Literal["pending", "trusted", "rejected"]] = {
    "pending": "pending",
    "approved": "trusted",
    "rejected": "rejected",
}


def tool_in(text: str) -> str | None:
    """Read `tool:SERVER/TOOL`; None when it is no such thing."""
    kind, colon, tool = text.partition(":")
    return tool if colon and kind == TOOL else None


def listed(
    ctx: Context, status: ReviewStatus, effect: Effect | None = None
) -> tuple[list[dict[str, Any]], int]:
    """Tools of one status with what has changed, as many as fit, and how many were left out."""
    from remit.features.upstreams.pinning import SHARED  # noqa: PLC0415 - with the daemon only
    from remit.features.upstreams.views import review_view  # noqa: PLC0415 - the same

    if not ctx.sees_everything or status not in _STATUS:
        return [], 0
    reviews = ctx.services.tool_reviews
    shown: list[dict[str, Any]] = []
    room = BODY_BYTES // 2
    found = reviews.with_status(_STATUS[status], effect)
    for server, name, pin in found[:_MOST]:
        entry = review_view(server, name, pin)
        if status == "pending" and pin.status == "trusted":
            entry |= {"status": status, "reasons": [f"{SHARED}: held back from who holds both"]}
        room -= len(msgspec.json.encode(entry))
        if room < 0 and shown:
            break
        reviews.show(ctx.principal.id, server.name, name, pin)
        shown.append(entry)
    return shown, len(found) - len(shown)


async def decide(
    ctx: Context, tool: str, status: ReviewStatus, note: str, effect: Effect | None
) -> dict[str, Any]:
    """Decide about a tool exactly as the caller was shown it."""
    from remit.features.upstreams.reviews import ToolDecision  # noqa: PLC0415 - with the daemon only
    from remit.features.upstreams.views import review_view  # noqa: PLC0415

    if not ctx.sees_everything:
        raise NotFoundError(f"there is no review '{TOOL}:{tool}'")
    cause = Cause("reviewed", by=ctx.principal.id, decision=ctx.decision)
    done = await ctx.services.tool_reviews.decide(
        tool, ToolDecision(_STATUS[status], ctx.principal.id, note, cause, effect)
    )
    server, known = done.server, done.server.known.tools
    entries = [review_view(server, name, known[name]) for name in done.tools]
    answer = {key: value for key, value in entries[0].items() if key != "diff"}
    return answer | {
        "status": status,
        "decided": [{"tool": one["tool"], "fingerprint": one["fingerprint"]} for one in entries],
        "held": done.held_items(),
        "revision": ctx.kernel.authority.catalogue.revision,
    }
