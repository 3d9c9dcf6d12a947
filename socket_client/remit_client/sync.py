"""The blocking client: the same calls without an event loop, for scripts and the command line.

One thread at a time; it uses no thread of its own.
"""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zmq

from remit_client.address import find_address
from remit_client.codec import Question, encode_cancel, encode_question
from remit_client.dealer import CONNECT_SECONDS, Dealer
from remit_client.errors import ConnectionLost, RemitError, Timeout
from remit_client.inbox import Inbox
from remit_client.keys import Key
from remit_client.ledger import Ledger, OnProgress, Pending
from remit_client.wire import CANCEL, REQUEST, Answer, Push


class Client:
    """A connection to the daemon; `connect` makes one."""

    def __init__(self, dealer: Dealer, *, session: str | None = None) -> None:
        self._dealer = dealer
        self._session = session
        self._ledger = Ledger()
        self._poller = zmq.Poller()
        self._poller.register(dealer.socket, zmq.POLLIN)
        self._poller.register(dealer.monitor, zmq.POLLIN)

    def call(
        self,
        event: str,
        data: Any = None,
        *,
        timeout: float = 30,
        session: str | None = None,
        min_revision: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Ask for an event, and return the data of its answer.

        Raises:
            RemitError: the daemon said no, or no answer came; see `code`.
        """
        question = self._question(event, data, session, min_revision)
        return self._settle(question, timeout, on_progress).data

    def ask(
        self,
        event: str,
        data: Any = None,
        *,
        timeout: float = 30,
        session: str | None = None,
        min_revision: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Like `call`, but return the whole answer, with its decision and revision."""
        question = self._question(event, data, session, min_revision)
        return self._settle(question, timeout, on_progress)

    def allowed(self, event: str) -> bool:
        """Tell whether this client may use `event`."""
        return bool(self.call("permission:check", {"event": event})["allowed"])

    @contextmanager
    def subscribe(self, *patterns: str) -> Generator["Subscription"]:
        """Receive the pushed events that these patterns cover and this client may see."""
        subscription = Subscription(patterns, self)
        self._ledger.inboxes.append(subscription)
        try:
            self.call("event:subscribe", {"patterns": list(patterns)})
            yield subscription
        finally:
            self._ledger.inboxes.remove(subscription)
            self._unsubscribe(self._ledger.unshared(subscription))

    def ready(self) -> None:
        """Wait for the connection.

        Raises:
            Unreachable: there is none after a moment.
            Unauthorised: the daemon refused it.
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        self.pump(0)
        while not self._dealer.up:
            if self._dealer.refusal is not None:
                raise self._dealer.refusal
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._dealer.unreachable()
            self.pump(left)

    def pump(self, seconds: float | None) -> None:
        """Take in what arrives, for at most this long, or until something does."""
        self._poller.poll(None if seconds is None else max(0, int(seconds * 1000)))
        was_up = self._dealer.up
        lost = self._dealer.catch_up()
        while (message := self._dealer.fetch()) is not None:
            self._ledger.take(*message)
        if lost:
            self._ledger.fail(ConnectionLost("the connection broke before the answer came"))
        self._ledger.interrupt(self._dealer.refusal, lost=lost)
        if self._dealer.up and (lost or not was_up) and self._ledger.inboxes:
            self._renew()

    def _question(
        self, event: str, data: Any, session: str | None, min_revision: int | None
    ) -> Question:
        named = self._session if session is None else session
        return Question(self._ledger.next_id(), event, data, named, min_revision)

    def _settle(self, question: Question, seconds: float, on_progress: OnProgress | None) -> Answer:
        body = encode_question(question)
        deadline = time.monotonic() + seconds
        self.ready()
        pending = self._ledger.pending[question.id] = Pending(on_progress)
        try:
            if not self._dealer.post(REQUEST, body):
                raise self._dealer.unreachable()
            while pending.outcome is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Timeout(f"no answer to {question.event} within {seconds} s")
                self.pump(left)
        finally:
            del self._ledger.pending[question.id]
            if pending.outcome is None and self._dealer.up:
                self._dealer.post(CANCEL, encode_cancel(question.id))
        return pending.result()

    def _renew(self) -> None:
        """Subscribe again: the daemon forgets subscriptions with the connection."""
        patterns = {"patterns": self._ledger.patterns()}
        question = self._question("event:subscribe", patterns, None, None)
        self._dealer.post(REQUEST, encode_question(question))

    def _unsubscribe(self, patterns: list[str]) -> None:
        if not patterns or not self._dealer.up:
            return
        try:
            self.call("event:unsubscribe", {"patterns": patterns}, timeout=1)
        except RemitError:
            return  # it ends with the connection at the latest


class Subscription(Inbox):
    """An iterator of pushed events that waits for the next one."""

    def __init__(self, patterns: tuple[str, ...], client: Client) -> None:
        super().__init__(patterns)
        self._client = client

    def __iter__(self) -> Iterator[Push]:
        return self

    def __next__(self) -> Push:
        while (push := self.take()) is None:
            self._client.pump(None)
        return push

    def wait(self, seconds: float) -> Push | None:
        """The next event, or None when none came in time."""
        deadline = time.monotonic() + seconds
        while (push := self.take()) is None and (left := deadline - time.monotonic()) > 0:
            self._client.pump(left)
        return push


@contextmanager
def connect(
    home: str | Path | None = None,
    endpoint: str | None = None,
    key: str | Path | Key | None = None,
    *,
    session: str | None = None,
) -> Generator[Client]:
    """Connect to the daemon; the arguments and errors are those of `remit_client.connect`."""
    dealer = Dealer(find_address(home, endpoint, key))
    try:
        client = Client(dealer, session=session)
        client.ready()
        yield client
    finally:
        dealer.close()
