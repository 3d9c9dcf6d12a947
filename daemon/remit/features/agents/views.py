"""agent:* — looking at agents and talking to them. Nobody sees beyond its own descendants."""

from typing import Annotated, Any

import msgspec

from remit.errors import ConflictError, InvalidDataError, TooLargeError
from remit.features.agents.launcher import Launcher
from remit.features.messages.mailbox import DIRECT_EVENT, MESSAGE_BYTES, Mailbox, MailRows
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import agent_in_reach, held_by, may_address, unknown_agent
from remit.model.principal import Agent
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Key, Name

Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


@event_handler("agent:list", capability="spawn_agents", effect="read")
async def list_(ctx: Context, limit: Limit = PAGE_LIMIT, after: Key = "") -> dict[str, Any]:
    """List yourself and your descendants in the order in which they came.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    fleet = ctx.kernel.authority.fleet
    if ctx.principal.is_operator:
        visible = fleet.all()
    else:
        found = map(fleet.get, fleet.subtree(ctx.principal.id))
        visible = sorted((one for one in found if one is not None), key=_place)
    start = _place_of(after)
    remaining = [one for one in visible if _place(one) > start]
    shown = remaining[:limit]
    more = len(remaining) > limit
    return {
        "items": [_summary(ctx, one) for one in shown],
        "total": len(visible),
        "next": f"{shown[-1].position}/{shown[-1].id}" if more else None,
    }


def _place(agent: Agent) -> tuple[int, str]:
    return agent.position, agent.id


def _place_of(cursor: str) -> tuple[int, str]:
    position, _, name = cursor.partition("/")
    if cursor and not (position.isascii() and position.isdigit() and len(position) < 20):  # noqa: PLR2004 - digits of a position
        raise InvalidDataError("that is not the `next` of a page", details={"path": "$.after"})
    return (int(position), name) if cursor else (-1, "")


def _summary(ctx: Context, agent: Agent) -> dict[str, Any]:
    fleet = ctx.kernel.authority.fleet
    return {
        "agent_id": agent.id,
        "parent": agent.parent,
        "name": agent.spec.name,
        "status": agent.spec.status,
        "profile": agent.spec.profile,
        "kind": "client" if ctx.kernel.keyring.is_client(agent.id) else "agent",
        "depth": fleet.depth(agent.id),
        "children": len(fleet.children(agent.id)),
        "connected": _connections(ctx, agent.id),
        "created_at": agent.created_at,
        "session": agent.spec.session,
        "bound": agent.spec.session_names,
    }


def _connections(ctx: Context, agent: str) -> int:
    mailbox = ctx.kernel.find(Mailbox)
    return mailbox.connections(agent) if mailbox is not None else 0


@event_handler("agent:status", capability="spawn_agents", effect="read")
async def status(ctx: Context, agent_id: Name) -> dict[str, Any]:
    """Tell what one of your descendants, or you, may do and use up now.

    Args:
        agent_id: the agent.
    """
    agent = agent_in_reach(ctx, agent_id)
    kernel = ctx.kernel
    grant = held_by(ctx, agent_id)
    waiting = await MailRows(kernel.database).mail_count(agent_id)
    spec = agent.spec
    return _summary(ctx, agent) | {
        "system_prompt": spec.system_prompt,
        "capabilities": spec.chosen,
        "switched_off": spec.switched_off,
        "allowed_events": sorted(grant.events),
        "allowed_claude_tools": sorted(grant.claude_tools),
        "limits": grant.limits.to_json(),
        "use": {
            "calls_last_minute": kernel.rate_limiter.calls(agent_id),
            "running": kernel.rate_limiter.running(agent_id),
            "children": len(kernel.authority.fleet.children(agent_id)),
            "waiting_messages": waiting,
        },
        "bill": msgspec.structs.asdict(kernel.bills.bill(agent_id)),
        "process": _process(ctx, agent_id),
        "revision": ctx.catalogue.revision,
    }


def _process(ctx: Context, agent_id: str) -> dict[str, Any] | None:
    launcher = ctx.kernel.find(Launcher)
    found = launcher.status(agent_id) if launcher is not None else None
    return msgspec.structs.asdict(found) if found is not None else None


@event_handler("agent:send_message", capability="agent_messaging", triggers=[DIRECT_EVENT])
async def send_message(
    ctx: Context, mailbox: Mailbox, agent_id: Name, message: Any
) -> dict[str, Any]:
    """Send a message to an agent of your own tree; it is kept for one that is away.

    Args:
        agent_id: whom to tell.
        message: any JSON value.
    """
    size = len(msgspec.json.encode(message))
    if size > MESSAGE_BYTES:
        raise TooLargeError(
            f"the message has {size:,} bytes; {MESSAGE_BYTES:,} are the limit",
            hint="put it into the shared state and send its key",
        )
    if not may_address(ctx, agent_id):
        raise unknown_agent(agent_id)
    if not mailbox.may_receive(agent_id):
        raise ConflictError(
            f"{agent_id!r} may not receive messages",
            hint=f"its profile would have to grant {DIRECT_EVENT}",
        )
    told = await mailbox.send(agent_id, message, ctx.principal.id)
    return {"delivered": told, "kept": not told}
