"""The asynchronous client."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from remit_client.address import find_address
from remit_client.codec import Question, encode_cancel, encode_question
from remit_client.dealer import CONNECT_SECONDS, Dealer
from remit_client.errors import ConnectionLost, RemitError, Timeout
from remit_client.keys import Key
from remit_client.ledger import Ledger, OnProgress, Pending
from remit_client.subscription import Subscription
from remit_client.wire import CANCEL, REQUEST, Answer

MAX_PENDING = 256
LIST_NEWS = "self/news"
"""A request about oneself, and what is pushed because of it; it is no event."""


class Client:
    """A connection to the daemon; `connect` makes one. Any number of tasks may share it."""

    def __init__(self, dealer: Dealer, tasks: TaskGroup, *, session: str | None = None) -> None:
        self._dealer = dealer
        self._session = session
        self._tasks = tasks
        self._ledger = Ledger()
        self._slots = anyio.Semaphore(MAX_PENDING, fast_acquire=True)
        self._changed = anyio.Event()
        self._nap = anyio.CancelScope()

    async def call(
        self,
        event: str,
        data: Any = None,
        *,
        timeout: float = 30,  # noqa: ASYNC109  on its end the daemon is told, too
        session: str | None = None,
        min_revision: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Any:
        """Ask for an event, and return the data of its answer.

        At most `MAX_PENDING` requests are under way; a further one waits for its turn.

        Raises:
            RemitError: the daemon said no, or no answer came; see `code`.
        """
        question = self._question(event, data, session, min_revision)
        return (await self._settle(question, timeout, on_progress)).data

    async def ask(
        self,
        event: str,
        data: Any = None,
        *,
        timeout: float = 30,  # noqa: ASYNC109
        session: str | None = None,
        min_revision: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Like `call`, but return the whole answer, with its decision and revision."""
        question = self._question(event, data, session, min_revision)
        return await self._settle(question, timeout, on_progress)

    async def allowed(self, event: str) -> bool:
        """Tell whether this client may use `event`."""
        result = await self.call("permission:check", {"event": event})
        return bool(result["allowed"])

    @asynccontextmanager
    async def subscribe(self, *patterns: str) -> AsyncGenerator[Subscription]:
        """Receive the pushed events that these patterns cover and this client may see."""
        subscription = Subscription(patterns)
        self._ledger.inboxes.append(subscription)
        try:
            await self.call("event:subscribe", {"patterns": list(patterns)})
            yield subscription
        finally:
            self._ledger.inboxes.remove(subscription)
            await self._unsubscribe(self._ledger.unshared(subscription))

    @asynccontextmanager
    async def list_news(self) -> AsyncGenerator[Subscription]:
        """Be told whenever what this client may be listed as tools or skills may have changed."""
        subscription = Subscription((LIST_NEWS,))
        self._ledger.inboxes.append(subscription)
        try:
            with suppress(ConnectionLost):  # asked for again with the next connection
                await self.call(LIST_NEWS)
            yield subscription
        finally:
            self._ledger.inboxes.remove(subscription)

    async def ready(self) -> None:
        """Wait for the connection.

        Raises:
            Unreachable: there is none after a moment.
            Unauthorised: the daemon refused it.
        """
        with anyio.move_on_after(CONNECT_SECONDS):
            while not self._dealer.up:
                if self._dealer.refusal is not None:
                    await checkpoint()
                    raise self._dealer.refusal
                await self._changed.wait()
            return
        raise self._dealer.unreachable()

    def start(self) -> None:
        """Read the socket and the news of the connection in the background."""
        self._tasks.start_soon(self._read)
        self._tasks.start_soon(self._watch)

    def _question(
        self, event: str, data: Any, session: str | None, min_revision: int | None
    ) -> Question:
        named = self._session if session is None else session
        return Question(self._ledger.next_id(), event, data, named, min_revision)

    async def _settle(
        self, question: Question, seconds: float, on_progress: OnProgress | None
    ) -> Answer:
        body = encode_question(question)
        with anyio.move_on_after(seconds):
            async with self._slots:
                await self.ready()
                return await self._exchange(question.id, body, on_progress)
        raise Timeout(f"no answer to {question.event} within {seconds} s")

    async def _exchange(
        self, request_id: int, body: bytes, on_progress: OnProgress | None
    ) -> Answer:
        done = anyio.Event()
        pending = self._ledger.pending[request_id] = Pending(on_progress, done.set)
        try:
            if not self._post(REQUEST, body):
                # Whoever tries again at once must let the loss be noticed, and others go on.
                await checkpoint()
                raise self._dealer.unreachable()
            await done.wait()
        finally:
            del self._ledger.pending[request_id]
            if pending.outcome is None and self._dealer.up:
                # Timed out or cancelled: the daemon need not go on.
                self._post(CANCEL, encode_cancel(request_id))
        return pending.result()

    def _post(self, kind: bytes, body: bytes) -> bool:
        sent = self._dealer.post(kind, body)
        if self._dealer.has_news():
            self._nap.cancel()
        return sent

    async def _read(self) -> None:
        descriptor = self._dealer.socket.fileno()
        while True:
            self._drain()
            # libzmq's descriptor is edge-triggered, so `_post` ends this nap when it must.
            with anyio.CancelScope() as self._nap:
                await anyio.wait_readable(descriptor)

    def _drain(self) -> None:
        while (message := self._dealer.fetch()) is not None:
            self._ledger.take(*message)

    async def _watch(self) -> None:
        descriptor = self._dealer.monitor.fileno()
        while True:
            was_up = self._dealer.up
            lost = self._dealer.catch_up()
            if lost:
                self._drain()  # an answer that came before the end counts
                self._ledger.fail(ConnectionLost("the connection broke before the answer came"))
            self._ledger.interrupt(self._dealer.refusal, lost=lost)
            if self._dealer.up and (lost or not was_up) and self._ledger.inboxes:
                self._tasks.start_soon(self._renew)
            self._changed.set()
            self._changed = anyio.Event()
            await anyio.wait_readable(descriptor)

    async def _renew(self) -> None:
        """Subscribe again: the daemon forgets subscriptions with the connection."""
        patterns = self._ledger.patterns()
        try:
            if LIST_NEWS in patterns:
                await self.call(LIST_NEWS)
                patterns.remove(LIST_NEWS)
            if patterns:
                await self.call("event:subscribe", {"patterns": patterns})
        except ConnectionLost:
            return  # the next reconnect tries again
        except RemitError as error:
            self._ledger.interrupt(error, lost=False)

    async def _unsubscribe(self, patterns: list[str]) -> None:
        if not patterns or not self._dealer.up:
            return
        with anyio.move_on_after(1, shield=True):
            try:
                await self.call("event:unsubscribe", {"patterns": patterns})
            except RemitError:
                return  # it ends with the connection at the latest


@asynccontextmanager
async def connect(
    home: str | Path | None = None,
    endpoint: str | None = None,
    key: str | Path | Key | None = None,
    *,
    session: str | None = None,
) -> AsyncGenerator[Client]:
    """Connect to the daemon; reconnects by itself, but never repeats a request.

    Args:
        home: the daemon's state directory; default `REMIT_HOME` or the XDG state directory.
        endpoint: where it serves; default `REMIT_ENDPOINT`, or the file `endpoint` in its home.
        key: a key file or a loaded key; default `REMIT_KEY`, or the operator's key in its home.
        session: the session that every request names which does not name another one.

    Raises:
        Unreachable: no daemon there.
        Unauthorised: the daemon does not know the key.
        BadKey: a key file cannot be used.
    """
    dealer = Dealer(find_address(home, endpoint, key))
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            client = Client(dealer, tasks, session=session)
            client.start()
            try:
                await client.ready()
                yield client
            except Exception as error:  # carried out by hand: the task group would wrap it
                failure = error
            tasks.cancel_scope.cancel()
    finally:
        dealer.close()
    if failure is not None:
        raise failure
