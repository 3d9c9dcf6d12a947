"""MCP over HTTP: who asks, and that nobody stays who may not be here any more.

A request is somebody's by the bearer token that it shows, each one anew. The library is imported
when the first request arrives: it costs a second and 40 MB that others need not pay.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskGroup

from remit.faces.http.server import ABORT
from remit.faces.mcp.admission import Admission, Refusal, session_of
from remit.faces.mcp.caller import DoorCaller
from remit.kernel.dispatch.call import Door
from remit.kernel.dispatch.limits import Running
from remit.model.principal import Bearer

if TYPE_CHECKING:
    from remit.faces.mcp.server import McpServer
    from remit.faces.mcp.sessions import Sessions

    Served = tuple[McpServer, Sessions]

log = structlog.get_logger()

CALLER = "remit_caller"
"""Where the caller of a request stands in its scope."""
MOST_SESSIONS = 10_000
_SESSION_SECONDS = 1_800.0
_TOO_MANY = Refusal(429, "this agent has too many sessions open; close some with DELETE")


class Endpoint:
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
        self._served: Served | None = None

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
        self, served: "Served", bearer: Bearer, request: tuple[Any, Any, Any], deadline: float
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
        if self._served is not None:
            self._served[0].changed(name)

    def evict(self, name: str) -> int:
        """Cut everything of a caller that was shut out; tell how many connections that were."""
        self._running.end(name)
        if self._served is not None:
            self._served[0].forget(name)
            if self._tasks is not None:
                self._served[1].end(name, self._tasks)
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
        return 0 if self._served is None else len(self._served[1])

    def drop_token(self, hash_: str) -> None:
        """Cut what was opened with a token that counts no longer."""
        for name, mine in tuple(self._open.items()):
            for abort in [abort for abort, shown in mine.items() if shown == hash_]:
                del mine[abort]
                abort()
            self._running.end(name, mark=hash_)

    async def _ready(self) -> "Served":
        if self._served is None:
            async with self._starting:
                if self._served is None:
                    self._served = await self._start()
        return self._served

    async def _start(self) -> "Served":
        await anyio.to_thread.run_sync(_import)
        from mcp.server.streamable_http_manager import (  # noqa: PLC0415 - see above
            StreamableHTTPSessionManager,
        )

        from remit.faces.mcp.server import McpServer  # noqa: PLC0415 - see above
        from remit.faces.mcp.sessions import Sessions  # noqa: PLC0415 - see above

        served = McpServer(lambda ctx: ctx.request.scope[CALLER])  # type: ignore[union-attr]
        manager = StreamableHTTPSessionManager(
            served.server,
            session_idle_timeout=_SESSION_SECONDS,
            max_request_body_size=self._body_bytes,
            max_sessions=MOST_SESSIONS,
        )
        if self._tasks is None:
            raise RuntimeError("the endpoint is not being served")
        await self._tasks.start(_hold, manager)
        self._tasks.start_soon(served.listeners.run)
        return served, Sessions(manager, most_of_one=self._sessions_each)


async def _hold(manager: Any, *, task_status: Any) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


def _import() -> None:
    """In a thread: the loop goes on meanwhile."""
    import mcp.server.streamable_http_manager  # noqa: F401, PLC0415 - see above

    import remit.faces.mcp.server  # noqa: F401, PLC0415 - see above


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
