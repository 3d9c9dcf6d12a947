"""`remit mcp`: one agent's tools for one host, over standard input and output.

The process beside the daemon holds the agent's key and nothing else; every question goes through
the daemon's door. For a profile an agent is made that lives as long as the host does.
"""

import os
import platform
import re
import secrets
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import structlog

from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import InvalidDataError, NotFoundError, RemitError, with_code
from remit_client.client import Client, connect
from remit_client.errors import RemitError as ClientError
from remit_client.keys import Key, load_key

log = structlog.get_logger()

_END_SECONDS = 5.0
_MARK = f"remit mcp on {platform.node()[:64]}, process "
"""A number of a process says nothing about one of another machine."""


class Who(msgspec.Struct, frozen=True):
    """For whom to serve: an agent that there is, or a new one with a profile."""

    agent: str = ""
    profile: str = ""
    key: str = ""
    session: str | None = None


async def serve_mcp(settings: Settings, who: Who, *, embedded: bool = False) -> None:
    """Serve one host until it goes away, or we are told to stop.

    Raises:
        RemitError: there is no daemon, no such agent, or not for us.
    """
    async with AsyncExitStack() as stack:
        if embedded and running_pid(Home(settings.home)) is None:
            from remit.app.daemon import run_daemon  # noqa: PLC0415 - 300 ms; only when wanted

            await stack.enter_async_context(run_daemon(settings))
        with _own_errors():
            async with identity(settings, who) as key:
                await _serve_as(settings, key, who)


async def _serve_as(settings: Settings, key: Key, who: Who) -> None:
    async with connect(**_way(settings, key), session=who.session) as client:
        from remit.faces.mcp.stdio import serve_stdio  # noqa: PLC0415 - 1 s: a mistake is told first

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_until_signal, tasks.cancel_scope)
            await serve_stdio(client, key.name)
            tasks.cancel_scope.cancel()


async def _until_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


@asynccontextmanager
async def identity(settings: Settings, who: Who) -> AsyncGenerator[Key]:
    """The key to come in with.

    Raises:
        RemitError: there is none.
    """
    if who.profile:
        mine = _own_key(who)
        own = None if mine is None else load_key(mine)
        async with connect(**_way(settings, mine)) as client:
            server = _server(settings, own)
            async with _agent_of_host(client, who.profile) as credentials:
                yield Key(**credentials, **server)
        return
    path = _own_key(who) or _key_file(Home(settings.home), who.agent)
    key = load_key(path)
    if who.agent and key.name != who.agent:
        message = f"{path} is the key of {key.name!r}, not of {who.agent!r}"
        raise InvalidDataError(message, hint="leave --agent out, or name its own key")
    yield key


def _own_key(who: Who) -> str | None:
    return who.key or os.environ.get("REMIT_KEY") or None


def _key_file(home: Home, agent: str) -> Path:
    if re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", agent):
        for folder in (home.keys, home.agents):
            if (path := folder / f"{agent}.key").is_file():
                return path
    raise NotFoundError(
        f"there is no key of {agent!r} in {home}",
        hint=f"make one: remit key new {agent} --profile PROFILE; or serve a profile: --profile",
    )


def _way(settings: Settings, key: Key | str | None) -> dict[str, Any]:
    """How to reach the daemon; a key of its own may know better than the usual home."""
    named = key is None or isinstance(key, Key) or settings.origins["home"].kind != "default"
    return {
        "home": str(settings.home) if named else None,
        "endpoint": settings.endpoint or None,
        "key": key,
    }


def _server(settings: Settings, own: Key | None) -> dict[str, str]:
    """The daemon's public key and address, for a key that is made now."""
    if own is not None and own.server_key:
        return {"server_key": own.server_key, "endpoint": own.endpoint}
    public = Home(settings.home).server_public_key
    return {"server_key": public.read_text(encoding="ascii").strip()}


@contextmanager
def _own_errors() -> Generator[None]:
    """Raise failures of the client as our own."""
    try:
        yield
    except BaseException as error:
        cause = error
        while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
            cause = cause.exceptions[0]
        if isinstance(cause, ClientError):
            raise with_code(cause.code, cause.message, cause.hint, cause.details) from cause
        if isinstance(cause, RemitError):
            raise cause from None
        raise


@asynccontextmanager
async def _agent_of_host(client: Client, profile: str) -> AsyncGenerator[dict[str, str]]:
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


async def _end(client: Client, name: str) -> None:
    try:
        await client.call("agent:terminate", {"agent_id": name})
    except ClientError as error:  # it goes with the next one that starts
        log.warning("mcp_agent_not_ended", agent=name, problem=error.message)


async def _end_abandoned(client: Client) -> None:
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
