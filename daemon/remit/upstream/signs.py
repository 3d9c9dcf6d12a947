"""What a connection lets its keeper know on its own."""

import anyio


class GoneError(Exception):
    """The server went away, or could not be asked; the text says what is known of it."""


class Signs:
    """It ended; its list may have changed. `wake` is set by either, and renewed by who waits."""

    def __init__(self) -> None:
        self.wake = anyio.Event()
        self.ended = False
        self.reason = ""
        self.changed_at: float | None = None

    def end(self, reason: str = "") -> None:
        """It cannot be used any more; the first reason counts."""
        self.reason = self.reason or reason
        self.ended = True
        self.wake.set()

    def change(self) -> None:
        """Its list may have changed; however often this is said, it is once until someone looks."""
        if self.changed_at is None:
            self.changed_at = anyio.current_time()
            self.wake.set()
