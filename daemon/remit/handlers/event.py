"""event:* — hear of events as they happen, as far as you may see them."""

from typing import Annotated, Any

import msgspec

from remit.bus.local import MAX_SUBSCRIPTIONS
from remit.errors import InvalidDataError, InvalidPatternError
from remit.model.fields import Name
from remit.model.patterns import EventPattern
from remit.runtime.context import Context
from remit.runtime.reach import connection_of
from remit.runtime.registry import event_handler

Patterns = Annotated[list[Name], msgspec.Meta(min_length=1, max_length=MAX_SUBSCRIPTIONS)]


@event_handler("event:subscribe", capability="self_knowledge", effect="read", inline=True)
def subscribe(ctx: Context, patterns: Patterns) -> dict[str, Any]:
    """Hear of events on this connection: those the patterns cover and you may see at that moment.

    Args:
        patterns: event names, or prefixes that end in '*'.
    """
    # INVARIANT: nothing is said about what a pattern covers. One that covers nothing, or nothing
    # for this caller, is taken like any other; whether something is seen is asked at each delivery.
    connection, bus = connection_of(ctx), ctx.services.courier.bus
    bus.subscribe(connection, patterns=_parse(patterns))
    return {"patterns": sorted(bus.subscriptions(connection).patterns)}


@event_handler("event:unsubscribe", capability="self_knowledge", effect="read", inline=True)
def unsubscribe(ctx: Context, patterns: Patterns) -> dict[str, Any]:
    """Hear of events no longer on this connection.

    Args:
        patterns: as they were subscribed; others are passed over.
    """
    connection, bus = connection_of(ctx), ctx.services.courier.bus
    bus.unsubscribe(connection, patterns=_parse(patterns))
    return {"patterns": sorted(bus.subscriptions(connection).patterns)}


def _parse(texts: list[str]) -> list[EventPattern]:
    found = []
    for at, text in enumerate(texts):
        try:
            found.append(EventPattern.parse(text))
        except InvalidPatternError as error:
            details = {"path": f"$.patterns[{at}]"}
            raise InvalidDataError(error.message, hint=error.hint, details=details) from None
    return found
