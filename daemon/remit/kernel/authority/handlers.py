"""The handlers of one revision, and which of them may come and go while the daemon runs.

A table is never changed. Whoever brings events or takes them away makes another one, which comes in
force together with the revision that was compiled against it.
"""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from remit.errors import ConflictError
from remit.model.event import EventSpec, TakenEventError

MAX_EVENTS = 10_000
"""Of all sources together: every one of them costs each profile time when it is compiled."""


class HandlerTable(msgspec.Struct, frozen=True, eq=False):
    """Handlers by event."""

    by_event: Mapping[str, Any] = {}
    """`Handler`s. What runs them knows that; here only what they say about themselves counts."""
    sources: Mapping[str, frozenset[str]] = {}
    """The events of each source that came at run time, by the id of the source."""

    @property
    def specs(self) -> list[EventSpec]:
        """What is known about each event."""
        return [handler.spec for handler in self.by_event.values()]

    def events_of(self, source: str) -> frozenset[str]:
        """The events that a source brought; none when it is not here."""
        return self.sources.get(source, frozenset())

    def with_source(self, source: str, handlers: Mapping[str, Any]) -> Self:
        """The table with exactly these events of a source, whatever it had before.

        Raises:
            ConflictError: there would be too many.
            HandlerError: a name or an old name is somebody else's.
        """
        rest = self.without_source(source)
        taken = _names(rest.by_event)
        for name, handler in _names(handlers).items():
            if name in taken:
                raise TakenEventError(name, taken[name].spec.place, handler.spec.place)
        if sum(map(len, rest.sources.values())) + len(handlers) > MAX_EVENTS:
            message = f"more than {MAX_EVENTS:,} events would have come at run time"
            raise ConflictError(message, hint="take some of them away first")
        return type(self)(
            {**rest.by_event, **handlers}, {**rest.sources, source: frozenset(handlers)}
        )

    def without_source(self, source: str) -> Self:
        """The table without the events of a source."""
        gone = self.sources.get(source)
        if gone is None:
            return self
        return type(self)(
            {name: handler for name, handler in self.by_event.items() if name not in gone},
            {name: events for name, events in self.sources.items() if name != source},
        )


def _names(handlers: Mapping[str, Any]) -> dict[str, Any]:
    """Every name that is taken, old ones included."""
    return {
        name: handler
        for event, handler in handlers.items()
        for name in (event, *handler.spec.aliases)
    }
