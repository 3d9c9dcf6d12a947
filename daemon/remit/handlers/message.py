"""message:* — channels that agents talk on, and what is said to one agent alone.

Messages are not kept: who does not listen does not hear. Subscriptions belong to a connection and
end with it.
"""

from typing import Annotated, Any

import msgspec

from remit.bus.local import MAX_SUBSCRIPTIONS
from remit.errors import TooLargeError
from remit.model.fields import whole
from remit.runtime.context import Context
from remit.runtime.reach import connection_of
from remit.runtime.registry import event_handler

CHANNEL_LIMIT = 200
DATA_LIMIT = 65_536

Channel = Annotated[str, whole(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", most=CHANNEL_LIMIT)]
Channels = Annotated[list[Channel], msgspec.Meta(min_length=1, max_length=MAX_SUBSCRIPTIONS)]


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
    courier = ctx.services.courier
    courier.conversations.check(channel, ctx.principal.id)
    return {"delivered": courier.publish_on(channel, data, ctx.principal.id)}


@event_handler("message:subscribe", capability="agent_messaging", effect="read", inline=True)
def subscribe(ctx: Context, channels: Channels) -> dict[str, list[str]]:
    """Listen to channels on this connection; what is said there is pushed as message:publish.

    Args:
        channels: their names.
    """
    connection, courier = connection_of(ctx), ctx.services.courier
    for channel in channels:
        courier.conversations.check(channel, ctx.principal.id)
    courier.bus.subscribe(connection, channels=channels)
    return {"channels": sorted(courier.bus.subscriptions(connection).channels)}


@event_handler("message:unsubscribe", capability="agent_messaging", effect="read", inline=True)
def unsubscribe(ctx: Context, channels: Channels) -> dict[str, list[str]]:
    """Listen to channels no longer on this connection.

    Args:
        channels: their names; those not listened to are passed over.
    """
    connection, bus = connection_of(ctx), ctx.services.courier.bus
    bus.unsubscribe(connection, channels=channels)
    return {"channels": sorted(bus.subscriptions(connection).channels)}


@event_handler("message:subscriptions", capability="agent_messaging", effect="read", inline=True)
def subscriptions(ctx: Context) -> dict[str, list[str]]:
    """Tell which channels and events this connection has asked for."""
    asked = ctx.services.courier.bus.subscriptions(connection_of(ctx))
    return {"channels": sorted(asked.channels), "patterns": sorted(asked.patterns)}


@event_handler("message:direct", capability="agent_messaging", effect="read", pushed=True)
def direct(data: DirectMessage) -> None:
    """Something that was said to you alone.

    Args:
        from: who said it.
        message: what was said.
    """


def _check_data(data: Any) -> None:
    size = len(msgspec.json.encode(data))
    if size > DATA_LIMIT:
        raise TooLargeError(
            f"the data have {size:,} bytes; {DATA_LIMIT:,} are the limit",
            hint="put them in the shared state and say where",
        )
