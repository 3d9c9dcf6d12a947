"""MCP over HTTP: who asks, and that nobody stays who may not be here any more.

A request is somebody's by the bearer token that it shows, each one anew. The library is imported
when the first request arrives: it costs a second and 40 MB that others need not pay.
"""

import math
from collections.abc import AsyncGenerator, Callable, Collection, Generator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskGroup

from remit.faces.http.server import ABORT
from remit.faces.mcp.admission import OWNER, Admission, Refusal, session_of
from remit.kernel.dispatch.call import Call, Door
from remit.kernel.dispatch.context import Kernel
from remit.kernel.dispatch.limits import Running
from remit.model.principal import Bearer, Principal, Token
from remit_client.wire import Answer, Failure, Request

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from remit.faces.mcp.server import McpServer
    from remit.faces.mcp.tools import OnProgress, Place

log = structlog.get_logger()

CALLER = "remit_caller"
"""Where the caller of a request stands in its scope."""
MOST_SESSIONS = 10_000
_SESSION_SECONDS = 1_800.0
_CANCELLED = Failure("cancelled", "the call was ended before it was done")
_TOO_MANY = Refusal(429, "this agent has too many sessions open; close some with DELETE")


class McpEndpoint:
    """The ASGI application under /mcp."""

    def __init__(
        self,
        door: Door,
        admission: Admission,
        *,
        in_flight: int = 256,
        body_bytes: int = 1 << 20,
        body_seconds: float = 15.0,
        sessions_each: int = 1_000,
    ) -> None:
        self._door = door
        self._admission = admission
        self._running = Running(in_flight)
        self._open: dict[str, dict[Callable[[], None], str]] = {}
        self._body_bytes = body_bytes
        self._body_seconds = body_seconds
        self._sessions_each = sessions_each
        self._tasks: TaskGroup | None = None
        self._starting = anyio.Lock()
        self._serving: _Serving | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        """Serve while the block runs; everything that is open ends with it."""
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            except Exception as error:  # carried out by hand: the task group would wrap it
                failure = error
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    @contextmanager
    def connected(self, kernel: Kernel) -> Generator[None]:
        """Let hosts hear of changed lists, and cut those of whoever is revoked."""
        delivery, keyring = kernel.delivery, kernel.keyring
        change, revoke, drop = delivery.on_change, keyring.on_revoke, keyring.tokens.on_drop

        def on_revoke(name: str) -> None:
            self.evict(name)
            revoke(name)

        def on_drop(token: Token) -> None:
            self.drop_token(token.hash)
            drop(token)

        delivery.on_change, keyring.on_revoke = self.changed, on_revoke
        keyring.tokens.on_drop = on_drop
        try:
            yield
        finally:
            delivery.on_change, keyring.on_revoke = change, revoke
            keyring.tokens.on_drop = drop

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        found = self._admission.admit(scope)
        if isinstance(found, Refusal):
            await found.respond(send)
            return
        name = found.principal.id
        abort: Callable[[], None] = scope.get(ABORT, _nothing)
        body = _Body(receive, self._body_seconds)
        # Before anything is waited for: whoever is shut out meanwhile is cut as well.
        self._open.setdefault(name, {})[abort] = found.token.hash
        try:
            with anyio.move_on_after(self._admission.seconds_left(found)) as staying:
                served = await self._ready()
                if abort in self._open.get(name, ()):
                    await self._serve(served, found, (scope, body, send), staying.deadline)
            if staying.cancelled_caught or body.is_late:
                abort()
        finally:
            mine = self._open.get(name, {})
            mine.pop(abort, None)
            if not mine:
                self._open.pop(name, None)

    async def _serve(
        self, served: "_Serving", bearer: Bearer, request: tuple[Any, Any, Any], deadline: float
    ) -> None:
        scope, receive, send = request
        server, sessions = served
        user = self._admission.user(bearer)
        if not sessions.has_room(scope, user.access_token.client_id):
            await _TOO_MANY.respond(send)
            return
        caller = DoorCaller(
            self._door,
            bearer.principal,
            self._running,
            session=session_of(scope),
            token=bearer.token.hash,
            deadline=deadline,
        )
        server.calling.set(caller.name)
        await sessions.handle({**scope, CALLER: caller, "user": user}, receive, send)

    def changed(self, name: str) -> None:
        """Say that what a caller may use may have changed."""
        if self._serving is not None:
            self._serving.server.changed(name)

    def evict(self, name: str) -> int:
        """Cut everything of a caller that was shut out; tell how many connections that were."""
        self._running.end(name)
        if self._serving is not None:
            self._serving.server.forget(name)
            if self._tasks is not None:
                self._serving.sessions.end(name, self._tasks)
        cut = tuple(self._open.pop(name, ()))
        for abort in cut:
            abort()
        return len(cut)

    def connections(self, name: str) -> int:
        """How many requests and streams of a caller are open."""
        return len(self._open.get(name, ()))

    @property
    def sessions(self) -> int:
        """How many sessions are open."""
        return 0 if self._serving is None else len(self._serving.sessions)

    def drop_token(self, hash_: str) -> None:
        """Cut what was opened with a token that counts no longer."""
        for name, mine in tuple(self._open.items()):
            for abort in [abort for abort, shown in mine.items() if shown == hash_]:
                del mine[abort]
                abort()
            self._running.end(name, mark=hash_)

    async def _ready(self) -> "_Serving":
        if self._serving is None:
            async with self._starting:
                if self._serving is None:
                    self._serving = await self._start()
        return self._serving

    async def _start(self) -> "_Serving":
        library = await anyio.to_thread.run_sync(_import)
        served = library.McpServer(lambda ctx: ctx.request.scope[CALLER])
        manager = library.StreamableHTTPSessionManager(
            served.server,
            session_idle_timeout=_SESSION_SECONDS,
            max_request_body_size=self._body_bytes,
            max_sessions=MOST_SESSIONS,
        )
        if self._tasks is None:
            raise RuntimeError("the endpoint is not being served")
        await self._tasks.start(_hold, manager)
        self._tasks.start_soon(served.listeners.run)
        sessions = McpSessions(
            manager,
            handshake_versions=library.HANDSHAKE_PROTOCOL_VERSIONS,
            most_of_one=self._sessions_each,
        )
        return _Serving(served, sessions)


class DoorCaller:
    """A caller inside of the daemon; each request is decided anew by the dispatcher."""

    def __init__(
        self,
        door: Door,
        principal: Principal,
        running: Running,
        *,
        session: str | None = None,
        token: str = "",
        deadline: float = math.inf,
    ) -> None:
        """Wire the parts.

        Args:
            door: where it asks.
            principal: who it is.
            running: what runs for whom.
            session: the session that narrows its calls.
            token: by which it came in; its calls end with it.
            deadline: when that ends at the latest.
        """
        self.name = principal.id
        self.place: Place = (principal.id, session)
        self._door = door
        self._principal = principal
        self._running = running
        self._token = token
        self._deadline = deadline

    async def ask(
        self, event: str, data: Any = None, *, progress: "OnProgress | None" = None
    ) -> Answer:
        """The answer of an event."""
        if self._running.is_full(self.name):
            message = f"{self._running.limit} calls of {self.name!r} are under way"
            details = {"limit": "in_flight", "retry_after": 1.0}
            failure = Failure("limit_exceeded", message, "wait for some answers", details)
            return Answer(0, ok=False, error=failure)
        request = Request(0, event, data, self.place[1])
        outcome = self._door.submit(Call(self._principal, request, progress=progress))
        if isinstance(outcome, Answer):
            return outcome
        answer = Answer(0, ok=False, error=_CANCELLED)
        with self._running.held(self.name, mark=self._token, deadline=self._deadline) as scope:
            answer = await outcome.run()
        if scope.cancelled_caught:
            log.info("mcp_call_ended", caller=self.name, event_name=event)
        return answer


class McpSessions:
    """The sessions of protocols until 2025-11-25: bounded for each agent, ended when it is revoked.

    The library keeps them by their ids alone.
    """

    def __init__(
        self,
        manager: "StreamableHTTPSessionManager",
        *,
        handshake_versions: Collection[str],
        most_of_one: int,
    ) -> None:
        self._manager = manager
        self._handshake_versions = handshake_versions
        self._most_of_one = most_of_one

    def __len__(self) -> int:
        return len(self._manager._server_instances)  # noqa: SLF001 - there is no public way

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request."""
        await self._manager.handle_request(scope, receive, send)

    def has_room(self, scope: Any, owner: str) -> bool:
        """Tell whether a request may be served; one that opens a session may be one too many."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        version = headers.get(b"mcp-protocol-version")
        is_handshake = version is None or version in self._handshake_versions
        if b"mcp-session-id" in headers or not is_handshake:
            return True
        owners = self._manager._session_owners.values()  # noqa: SLF001 - as above
        return sum(one["client_id"] == owner for one in owners) < self._most_of_one

    def end(self, name: str, tasks: TaskGroup) -> None:
        """End the sessions of a caller that was shut out."""
        owned = self._manager._session_owners.items()  # noqa: SLF001 - as above
        start = OWNER.format(name, "")
        for id_ in [id_ for id_, one in owned if one["client_id"].startswith(start)]:
            transport = self._manager._server_instances[id_]  # noqa: SLF001 - as above
            tasks.start_soon(self._manager._discard_session, id_, transport)  # noqa: SLF001


class _Serving(NamedTuple):
    """What is there once the library is imported."""

    server: "McpServer"
    sessions: McpSessions


async def _hold(manager: Any, *, task_status: Any) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


def _import() -> Any:
    """The library, and the server above it; in a thread: the loop goes on meanwhile."""
    import mcp_types.version  # noqa: PLC0415 - see above
    from mcp.server import streamable_http_manager  # noqa: PLC0415 - see above

    from remit.faces.mcp.server import McpServer  # noqa: PLC0415 - see above

    return SimpleNamespace(
        McpServer=McpServer,
        StreamableHTTPSessionManager=streamable_http_manager.StreamableHTTPSessionManager,
        HANDSHAKE_PROTOCOL_VERSIONS=mcp_types.version.HANDSHAKE_PROTOCOL_VERSIONS,
    )


class _Body:
    """Reads a request; one whose body comes too slowly is treated as gone."""

    def __init__(self, receive: Any, seconds: float) -> None:
        self._receive = receive
        self._deadline = anyio.current_time() + seconds
        self._is_whole = False
        self.is_late = False

    async def __call__(self) -> Any:
        if self._is_whole:
            return await self._receive()
        with anyio.move_on_at(self._deadline):
            message = await self._receive()
            self._is_whole = not message.get("more_body", False)
            return message
        self.is_late = True
        return {"type": "http.disconnect"}


def _nothing() -> None:
    pass
