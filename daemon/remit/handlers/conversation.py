"""conversation:* — channels that only their participants use."""

from typing import Annotated, Any

import msgspec

from remit.model.fields import Name
from remit.runtime.context import Context
from remit.runtime.conversations import Conversation
from remit.runtime.descent import unknown_agent
from remit.runtime.paging import PAGE_LIMIT, PAGE_MAX, page
from remit.runtime.reach import may_address
from remit.runtime.registry import event_handler

MAX_PARTICIPANTS = 64

Participants = Annotated[list[Name], msgspec.Meta(max_length=MAX_PARTICIPANTS)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


@event_handler("conversation:create", capability="conversations", inline=True)
def create(ctx: Context, name: Name = "", participants: Participants = []) -> dict[str, str]:  # noqa: B006
    """Open a conversation: a channel for you and the agents you name.

    Args:
        name: what it is about, for people.
        participants: agents of your own tree; you take part anyway.
    """
    for other in participants:
        if not may_address(ctx, other):
            raise unknown_agent(other, "talk to")
    made = ctx.services.courier.conversations.open(
        ctx.principal.id,
        participants,
        name=name,
        at=ctx.services.wall_clock(),
    )
    return {"conversation": made.id, "channel": made.channel}


@event_handler("conversation:active", capability="conversations", effect="read", inline=True)
def active(ctx: Context, limit: Limit = PAGE_LIMIT, after: Name = "") -> dict[str, Any]:
    """List where you take part.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    found = {each.id: each for each in ctx.services.courier.conversations.of(ctx.principal.id)}
    return page(list(found), lambda name: _shown(found[name]), limit=limit, after=after)


def _shown(conversation: Conversation) -> dict[str, Any]:
    return {
        "conversation": conversation.id,
        "name": conversation.name,
        "channel": conversation.channel,
        "creator": conversation.creator,
        "participants": sorted(conversation.participants),
        "created_at": conversation.created_at,
    }
