"""Pushed events that wait for their reader."""

from collections import deque

from remit_client.errors import RemitError
from remit_client.wire import Push

QUEUE_SIZE = 1024


class Inbox:
    """What one subscription has received and nobody has read yet.

    `missed` counts what the daemon or this queue dropped because the reader was too slow;
    `interruptions` counts lost connections, during which an unknown number went by.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.patterns = patterns
        self.missed = 0
        self.interruptions = 0
        self._error: RemitError | None = None
        self._waiting: deque[Push] = deque()

    def covers(self, event: str) -> bool:
        """Tell whether one of the patterns covers this event name."""
        return any(
            event.startswith(pattern[:-1]) if pattern.endswith("*") else event == pattern
            for pattern in self.patterns
        )

    def deliver(self, push: Push) -> None:
        """Take an event; when nobody reads, the newest are dropped and counted."""
        if len(self._waiting) >= QUEUE_SIZE:
            self.missed += 1
            return
        self._waiting.append(push)
        self.notify()

    def fail(self, error: RemitError) -> None:
        """Nothing will come any more; the reader hears why once it has read the rest."""
        self._error = error
        self.notify()

    def take(self) -> Push | None:
        """The oldest event, or None when there is none yet.

        Raises:
            RemitError: there never will be one.
        """
        if self._waiting:
            return self._waiting.popleft()
        if self._error is not None:
            raise self._error
        return None

    def notify(self) -> None:
        """Called when something has come."""
