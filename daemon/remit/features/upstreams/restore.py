"""Upstream servers at the start: what was trusted is served again, and none of them is started."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
import structlog

from remit.errors import RemitError, UnavailableError
from remit.features.upstreams.pins import KnownServer, read_pins
from remit.features.upstreams.router import Line, OnListed, Switchboard
from remit.features.upstreams.server import MakeLink
from remit.features.upstreams.table import Serve, trusted_in, with_server
from remit.kernel.authority.handlers import HandlerTable
from remit.model.event import EventSpec
from remit.model.place import DefinitionError, Problem
from remit.model.upstream import Upstream, UpstreamTool

log = structlog.get_logger()

Read = Callable[[], tuple[Upstream, ...]]


class Remembered(msgspec.Struct, frozen=True):
    """A server as it is written down, and what is known about it."""

    upstream: Upstream
    known: KnownServer
    problem: str = ""
    """Why its events are not in force; empty when they are."""


class RestoredServers(msgspec.Struct, frozen=True, eq=False):
    """The table with the events of upstream tools, and the servers behind them."""

    table: HandlerTable
    board: Switchboard
    serve: Serve
    servers: tuple[Remembered, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What is wrong with the file of servers, or with what is known about them."""


class UpstreamSources(msgspec.Struct, frozen=True, eq=False):
    """Where upstream servers are written down and their pins kept, and how one is reached."""

    read: Read
    folder: Path
    make_link: MakeLink
    restored: RestoredServers


def no_servers(table: HandlerTable) -> UpstreamSources:
    """Where there are no upstream servers."""

    def make_link(upstream: Upstream, _on_listed: OnListed) -> Line:
        raise UnavailableError(f"{upstream.name!r} is not kept here")

    def serve(_present: Any, spec: EventSpec, _tool: UpstreamTool, _fingerprint: str) -> Any:
        raise UnavailableError(f"{spec.name!r} is not served here")

    return UpstreamSources(tuple, Path(), make_link, RestoredServers(table, Switchboard(), serve))


async def restore_servers(
    table: HandlerTable, read: Read, folder: Path, board: Switchboard, serve: Serve
) -> RestoredServers:
    """Serve what was trusted when the daemon last ran, before the first revision.

    A file with mistakes names no servers; pins that cannot be read are no trust.
    """
    try:
        upstreams = await anyio.to_thread.run_sync(read)
    except DefinitionError as error:
        told = [problem.to_json() for problem in error.problems]
        log.error("upstreams_rejected", problems=told)  # noqa: TRY400 - they say it all
        return RestoredServers(table, board, serve, (), error.problems)
    names = [upstream.name for upstream in upstreams]
    pins = await anyio.to_thread.run_sync(read_pins, folder, names)
    for problem in pins.problems:
        log.error("upstream_pins_damaged", problem=str(problem))
    servers = []
    for upstream in upstreams:
        known = pins.known.get(upstream.name) or KnownServer(name=upstream.name)
        why = ""
        try:
            table = with_server(table, upstream, known, serve)
        except RemitError as error:
            why = error.message
            log.error("upstream_not_served", upstream=upstream.name, problem=why)  # noqa: TRY400
        board.trust(upstream.name, trusted_in(table, upstream, known))
        servers.append(Remembered(upstream, known, why))
    return RestoredServers(table, board, serve, tuple(servers), pins.problems)
