"""Whoever a host acts for: asks events, and is answered whatever comes of it."""

import math
import os
import platform
import re
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import structlog

from remit.kernel.dispatch.call import Call, Door
from remit.model.principal import Principal
from remit_client.errors import RemitError as ClientError
from remit_client.wire import Answer, Failure, Progress, Request

if TYPE_CHECKING:
    from remit.kernel.dispatch.limits import Running
    from remit_client.client import Client

log = structlog.get_logger()

OnProgress = Callable[[Progress], None]
Place = tuple[str, str | None]
"""A name and the session that narrows its calls."""
_CANCELLED = Failure("cancelled", "the call was ended before it was done")
_CALL_SECONDS = 3_600.0
"""The daemon ends every call much earlier; this only bounds the wait for a daemon that hangs."""
_END_SECONDS = 5.0
_MARK = f"remit mcp on {platform.node()[:64]}, process "
"""A number of a process says nothing about one of another machine."""


class McpCaller(Protocol):
    """Somebody who asks."""

    @property
    def name(self) -> str:
        """Who it is."""

    @property
    def place(self) -> "Place":
        """Who it is, and where: in a session less may be listed."""

    async def ask(
        self, event: str, data: Any = None, *, progress: OnProgress | None = None
    ) -> Answer:
        """The answer of an event, good or bad; raises nothing of its own."""


class DoorCaller:
    """A caller inside of the daemon; each request is decided anew by the dispatcher."""

    def __init__(
        self,
        door: Door,
        principal: Principal,
        running: "Running",
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
        self, event: str, data: Any = None, *, progress: OnProgress | None = None
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


class SocketCaller:
    """A caller beside the daemon: its key opened the connection."""

    def __init__(self, client: "Client", name: str) -> None:
        self.name = name
        self.place: Place = (name, None)
        self._client = client

    async def ask(
        self, event: str, data: Any = None, *, progress: OnProgress | None = None
    ) -> Answer:
        """The answer of an event."""
        try:
            return await self._client.ask(event, data, timeout=_CALL_SECONDS, on_progress=progress)
        except ClientError as error:
            failure = Failure(error.code, error.message, error.hint, dict(error.details))
            return Answer(0, ok=False, error=failure)


@asynccontextmanager
async def agent_of_host(client: "Client", profile: str) -> AsyncGenerator[dict[str, str]]:
    """An agent with a profile that lives as long as the block; gives its name and its keys."""
    await _end_abandoned(client)
    name = f"mcp-{re.sub('[^a-z0-9_-]', '-', profile.lower())[:40]}-{secrets.token_hex(3)}"
    answer = await client.call(
        "agent:spawn",
        {"agent_id": name, "profile": profile, "name": f"{_MARK}{os.getpid()}", "launch": {}},
    )
    keys = {half: answer["credentials"][half] for half in ("public_key", "secret_key")}
    try:
        yield {"name": name, **keys}
    finally:
        with anyio.move_on_after(_END_SECONDS, shield=True):
            await _end(client, name)


async def _end(client: "Client", name: str) -> None:
    try:
        await client.call("agent:terminate", {"agent_id": name})
    except ClientError as error:  # it goes with the next one that starts
        log.warning("mcp_agent_not_ended", agent=name, problem=error.message)


async def _end_abandoned(client: "Client") -> None:
    """End the agents of processes that were killed before they could."""
    try:
        page = await client.call("agent:list", {"limit": 1000})
    except ClientError:
        return
    for one in page["items"]:
        mark = str(one.get("name", ""))
        if mark.startswith(_MARK) and not _is_alive(mark.removeprefix(_MARK)):
            await _end(client, one["agent_id"])


def _is_alive(pid: str) -> bool:
    if not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
