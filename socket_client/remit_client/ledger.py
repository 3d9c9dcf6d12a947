"""What a client waits for: answers to its requests, and pushed events.

It holds no socket and never waits, so the asynchronous and the blocking client share it.
"""

import itertools
from collections.abc import Callable

from remit_client.codec import (
    UNREADABLE,
    decode_answer,
    decode_gap,
    decode_progress,
    decode_push,
)
from remit_client.errors import RemitError, error_of
from remit_client.inbox import Inbox
from remit_client.wire import ANSWER, GAP, PROGRESS, PUSH, Answer, Progress

OnProgress = Callable[[Progress], None]


class Pending:
    """A request whose answer has not come."""

    __slots__ = ("_notify", "on_progress", "outcome")

    def __init__(
        self, on_progress: OnProgress | None, notify: Callable[[], None] | None = None
    ) -> None:
        self.on_progress = on_progress
        self.outcome: Answer | Exception | None = None
        self._notify = notify

    def settle(self, outcome: Answer | Exception) -> None:
        """Note how it ended; the first word counts."""
        if self.outcome is None:
            self.outcome = outcome
            if self._notify is not None:
                self._notify()

    def result(self) -> Answer:
        """The answer.

        Raises:
            RemitError: it says no, or it will never come.
        """
        if not isinstance(self.outcome, Answer):
            raise self.outcome or RemitError("the request has not ended")
        if not self.outcome.ok:
            raise error_of(self.outcome)
        return self.outcome


class Ledger:
    """Open requests by id, and open subscriptions."""

    def __init__(self) -> None:
        self.pending: dict[int, Pending] = {}
        self.inboxes: list[Inbox] = []
        self._ids = itertools.count(1)

    def next_id(self) -> int:
        """An id that this connection has not used."""
        return next(self._ids)

    def take(self, kind: bytes, body: bytes) -> None:
        """Enter a message of the daemon."""
        try:
            self._take(kind, body)
        except UNREADABLE:
            return  # a newer daemon may say more than this client understands

    def fail(self, error: RemitError) -> None:
        """End every open request."""
        for pending in self.pending.values():
            pending.settle(error)

    def interrupt(self, refusal: RemitError | None, *, lost: bool) -> None:
        """Tell the subscriptions that the connection was lost, or refused for good."""
        for inbox in self.inboxes:
            inbox.interruptions += lost
            if refusal is not None:
                inbox.fail(refusal)

    def patterns(self) -> list[str]:
        """Everything that is subscribed to."""
        return sorted({pattern for inbox in self.inboxes for pattern in inbox.patterns})

    def unshared(self, inbox: Inbox) -> list[str]:
        """The patterns of a closed subscription that no open one needs."""
        return sorted(set(inbox.patterns) - set(self.patterns()))

    def _take(self, kind: bytes, body: bytes) -> None:
        if kind == ANSWER:
            self._answer(decode_answer(body))
        elif kind == PROGRESS:
            self._progress(decode_progress(body))
        elif kind == PUSH:
            push = decode_push(body)
            for inbox in self.inboxes:
                if inbox.covers(push.event):
                    inbox.deliver(push)
        elif kind == GAP:
            missed = decode_gap(body).missed
            for inbox in self.inboxes:
                inbox.missed += missed

    def _answer(self, answer: Answer) -> None:
        if answer.id == "":
            # The daemon could not even read an id: whatever was meant, nobody waits in vain.
            self.fail(error_of(answer))
        elif isinstance(answer.id, int) and (pending := self.pending.get(answer.id)):
            pending.settle(answer)

    def _progress(self, progress: Progress) -> None:
        pending = self.pending.get(progress.id) if isinstance(progress.id, int) else None
        if pending is None or pending.on_progress is None:
            return
        try:
            pending.on_progress(progress)
        except Exception as error:  # the caller's own code: its failure belongs to its call
            pending.settle(error)
