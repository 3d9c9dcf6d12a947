"""message:*, event:* and conversation:* — what agents say to each other, and what they hear.

Messages on channels are not kept: who does not listen does not hear. A conversation is a channel
that only its participants use. Events are heard as they happen, as far as the caller may see them.
Subscriptions belong to a connection and end with it.
"""

from typing import Annotated, Any

import msgspec

from remit.errors import ConflictError, InvalidDataError, InvalidPatternError, TooLargeError
from remit.kernel.bus.bus import MAX_SUBSCRIPTIONS
from remit.kernel.bus.conversations import Conversation
from remit.kernel.bus.delivery import Connection
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.kernel.dispatch.visibility import may_address, unknown_agent
from remit.model.names import EventPattern
from remit.model.schema import PAGE_LIMIT, PAGE_MAX, Name, page, whole

CHANNEL_LIMIT = 200
DATA_LIMIT = 65_536
MAX_PARTICIPANTS = 64

Channel = Annotated[str, whole(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", most=CHANNEL_LIMIT)]
Channels = Annotated[list[Channel], msgspec.Meta(min_length=1, max_length=MAX_SUBSCRIPTIONS)]
Patterns = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MAX_SUBSCRIPTIONS)]
Participants = Annotated[list[Name], msgspec.Meta(max_length=MAX_PARTICIPANTS)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]


class DirectMessage(msgspec.Struct):
    """What `message:direct` carries."""

    from_: str = msgspec.field(name="from")
    message: Any


@event_handler(
    "message:publish",
    capability="agent_messaging",
    inline=True,
    fleeting=True,  # a copy of all talk is no audit, and nobody waits for the disk to be heard
    triggers=["message:publish"],
)
def publish(ctx: Context, channel: Channel, data: Any) -> dict[str, int]:
    """Say something on a channel; everybody hears it who listens there and may.

    Args:
        channel: its name, as in 'team/plan'; a channel is there as soon as it is used.
        data: any JSON value of at most 64 KB.
    """
    _check_data(data)
    delivery = ctx.kernel.delivery
    delivery.conversations.check(channel, ctx.principal.id)
    return {"delivered": delivery.publish_on(channel, data, ctx.principal.id)}


@event_handler("message:subscribe", capability="agent_messaging", effect="read", inline=True)
def subscribe(ctx: Context, channels: Channels) -> dict[str, list[str]]:
    """Listen to channels on this connection; what is said there is pushed as message:publish.

    Args:
        channels: their names.
    """
    connection, delivery = _connection_of(ctx), ctx.kernel.delivery
    for channel in channels:
        delivery.conversations.check(channel, ctx.principal.id)
    delivery.bus.subscribe(connection, channels=channels)
    return {"channels": sorted(delivery.bus.subscriptions(connection).channels)}


@event_handler("message:unsubscribe", capability="agent_messaging", effect="read", inline=True)
def unsubscribe(ctx: Context, channels: Channels) -> dict[str, list[str]]:
    """Listen to channels no longer on this connection.

    Args:
        channels: their names; those not listened to are passed over.
    """
    connection, bus = _connection_of(ctx), ctx.kernel.delivery.bus
    bus.unsubscribe(connection, channels=channels)
    return {"channels": sorted(bus.subscriptions(connection).channels)}


@event_handler("message:subscriptions", capability="agent_messaging", effect="read", inline=True)
def subscriptions(ctx: Context) -> dict[str, list[str]]:
    """Tell which channels and events this connection has asked for."""
    asked = ctx.kernel.delivery.bus.subscriptions(_connection_of(ctx))
    return {"channels": sorted(asked.channels), "patterns": sorted(asked.patterns)}


@event_handler("message:direct", capability="agent_messaging", effect="read", pushed=True)
def direct(data: DirectMessage) -> None:
    """Something that was said to you alone.

    Args:
        from: who said it.
        message: what was said.
    """


@event_handler("event:subscribe", capability="self_knowledge", effect="read", inline=True)
def subscribe_events(ctx: Context, patterns: Patterns) -> dict[str, Any]:
    """Hear of events on this connection: those the patterns cover and you may see at that moment.

    Args:
        patterns: event names, or prefixes that end in '*'.
    """
    # INVARIANT: nothing is said about what a pattern covers. One that covers nothing, or nothing
    # for this caller, is taken like any other; whether something is seen is asked at each delivery.
    connection, bus = _connection_of(ctx), ctx.kernel.delivery.bus
    bus.subscribe(connection, patterns=_parse(patterns))
    return {"patterns": sorted(bus.subscriptions(connection).patterns)}


@event_handler("event:unsubscribe", capability="self_knowledge", effect="read", inline=True)
def unsubscribe_events(ctx: Context, patterns: Patterns) -> dict[str, Any]:
    """Hear of events no longer on this connection.

    Args:
        patterns: as they were subscribed; others are passed over.
    """
    connection, bus = _connection_of(ctx), ctx.kernel.delivery.bus
    bus.unsubscribe(connection, patterns=_parse(patterns))
    return {"patterns": sorted(bus.subscriptions(connection).patterns)}


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
    made = ctx.kernel.delivery.conversations.open(
        ctx.principal.id,
        participants,
        name=name,
        at=ctx.kernel.wall_clock(),
    )
    return {"conversation": made.id, "channel": made.channel}


@event_handler("conversation:active", capability="conversations", effect="read", inline=True)
def active(ctx: Context, limit: Limit = PAGE_LIMIT, after: Name = "") -> dict[str, Any]:
    """List where you take part.

    Args:
        limit: how many at the most.
        after: the `next` of the page before.
    """
    found = {each.id: each for each in ctx.kernel.delivery.conversations.of(ctx.principal.id)}
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


def _connection_of(context: Context) -> Connection:
    """The connection that pushed events go to.

    Raises:
        ConflictError: the request came by a way on which nothing can be pushed.
    """
    found: Connection | None = context.connection
    if found is None:
        raise ConflictError(
            "nothing can be pushed to where this request came from",
            hint="subscribe over the socket, for instance with remit_client",
        )
    return found


def _check_data(data: Any) -> None:
    size = len(msgspec.json.encode(data))
    if size > DATA_LIMIT:
        raise TooLargeError(
            f"the data have {size:,} bytes; {DATA_LIMIT:,} are the limit",
            hint="put them in the shared state and say where",
        )


def _parse(texts: list[str]) -> list[EventPattern]:
    found = []
    for at, text in enumerate(texts):
        try:
            found.append(EventPattern.parse(text))
        except InvalidPatternError as error:
            details = {"path": f"$.patterns[{at}]"}
            raise InvalidDataError(error.message, hint=error.hint, details=details) from None
    return found
