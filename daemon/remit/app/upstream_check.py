"""Asking upstream servers once, without a daemon: what they have, and what would become of it.

Nothing is written: what is trusted is decided by a daemon and its operator.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import structlog

from remit.app.offline_upstreams import pins_of, server_view
from remit.app.workbench import find_events
from remit.config.settings.table import Settings
from remit.errors import RemitError
from remit.features.upstreams.client.client import UpstreamClient
from remit.features.upstreams.client.state import Listing
from remit.features.upstreams.pins import KnownServer, Pins
from remit.features.upstreams.secrets import secret_value
from remit.features.upstreams.trust import Judge, after_listing, neighbours_of
from remit.kernel.processes.guard import process_guard
from remit.model.event import Universe
from remit.model.upstream import Upstream
from remit.policy.upstream_tools import visible

AT_ONCE = 4
_OWNER = "check"
_REASON = 300


def check_servers(settings: Settings, upstreams: tuple[Upstream, ...]) -> list[dict[str, Any]]:
    """Start each server, list its tools, end it; answers a report for each, in their order."""
    universe = find_events(settings).universe
    pins = pins_of(settings, upstreams)
    with _silence():  # what went wrong is in the reports, and an answer must stay JSON
        return anyio.run(_check_all, upstreams, universe, pins)


@contextmanager
def _silence() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


async def _check_all(
    upstreams: tuple[Upstream, ...], universe: Universe, pins: Pins
) -> list[dict[str, Any]]:
    slots = anyio.CapacityLimiter(AT_ONCE)
    reports: dict[str, dict[str, Any]] = {}

    async def check(upstream: Upstream) -> None:
        async with slots:
            reports[upstream.name] = await _check(upstream, universe, pins)

    async with anyio.create_task_group() as tasks:
        for one in upstreams:
            tasks.start_soon(check, one)
    return [reports[one.name] for one in upstreams]


async def _check(upstream: Upstream, universe: Universe, pins: Pins) -> dict[str, Any]:
    known = pins.known.get(upstream.name) or KnownServer(name=upstream.name)
    listing, error = await _list_once(upstream)
    if listing is None:
        failed = {"ok": False, "error": error, "found": 0, "left_out": 0, "left_out_because": []}
        return server_view(upstream, known, "failing") | failed | {"waiting": []}
    judge = Judge(neighbours_of(upstream.name, universe, pins.known))
    after = await anyio.to_thread.run_sync(
        after_listing, known, upstream, listing, judge, time.time()
    )
    waiting = [name for name, pin in sorted(after.tools.items()) if pin.status == "pending"]
    return server_view(upstream, after, "ready") | {
        "ok": True,
        "error": "",
        "found": len(listing.tools),
        "waiting": [f"tool:{upstream.name}/{visible(name, _REASON)}" for name in waiting],
        "left_out": listing.left_out,
        "left_out_because": [
            {"tool": visible(one.name, _REASON), "reason": visible(one.reason, _REASON)}
            for one in listing.reasons
        ],
    }


async def _list_once(upstream: Upstream) -> tuple[Listing | None, str]:
    async def listed(_listing: Listing) -> None:
        pass

    lazy = msgspec.structs.replace(upstream, start="lazy")
    client = UpstreamClient(
        lazy, secret=secret_value, on_listed=listed, guard=process_guard(_OWNER)
    )
    found: Listing | None = None
    why = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.run)
        try:
            found = await client.refresh()
        except RemitError as error:
            why = str(error.details.get("reason") or error.message)
        tasks.cancel_scope.cancel()
    return found, why
