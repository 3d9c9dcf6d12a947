"""Handlers that a drill puts into its daemon: they write down when they ran, and for whom.

The clock is the machine's monotonic one, which all processes share: what ran after a drill had an
answer in its hands can be told from what ran before.
"""

import time

import anyio

from remit.errors import RemitError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler

_RELAY_SECONDS = 15.0
_runs: list[tuple[str, float, bool]] = []


def _begin(ctx: Context) -> None:
    is_gone = not ctx.kernel.authority.fleet.lives(ctx.principal)
    _runs.append((ctx.principal.id, time.monotonic(), is_gone))


def _note(ctx: Context) -> None:
    # Not looking whether its caller lives: that may end in the very step in which a wait ends, and
    # between handing a call to a thread and its beginning there.
    _runs.append((ctx.principal.id, time.monotonic(), False))


@event_handler("drill:look", capability="drill", effect="read", inline=True)
def look(ctx: Context) -> None:
    """Run in the reader itself."""
    _begin(ctx)


@event_handler("drill:touch", capability="drill")
async def touch(ctx: Context, seconds: float) -> None:
    """Run as a task that is in the audit first: begin, wait, and have an effect."""
    _begin(ctx)
    await anyio.sleep(seconds)
    _note(ctx)


@event_handler("drill:read", capability="drill", effect="read")
async def read(ctx: Context, seconds: float) -> None:
    """Run as a task that nothing is written about."""
    _begin(ctx)
    await anyio.sleep(seconds)
    _note(ctx)


@event_handler("drill:work", capability="drill")
def work(ctx: Context, seconds: float) -> None:
    """Begin in a worker thread; there are fewer of them than requests."""
    _note(ctx)
    time.sleep(seconds)


@event_handler("drill:secret", capability="drill_secret", effect="read", inline=True)
def secret(ctx: Context) -> str:
    """Be the next hop of a relay."""
    _begin(ctx)
    return "secret"


@event_handler("drill:relay", capability="drill", effect="read")
async def relay(ctx: Context) -> dict[str, object]:
    """Call on, hop after hop, until a hop is refused."""
    hops, deadline = 0, time.monotonic() + _RELAY_SECONDS
    while time.monotonic() < deadline:
        try:
            await ctx.call("drill:secret")
        except RemitError as error:
            return {"hops": hops, "code": error.code}
        hops += 1
        await anyio.sleep(0.001)
    return {"hops": hops, "code": ""}


@event_handler("drill:runs", capability="drill_runs", effect="read", inline=True)
def runs(agents: list[str], since: float) -> dict[str, int]:
    """Count the runs of some agents: all, those after a moment, those begun when it was gone.

    Args:
        agents: whose runs.
        since: the moment, on the machine's monotonic clock.
    """
    of_them = [(at, is_gone) for name, at, is_gone in _runs if name in agents]
    late = sum(at > since for at, _ in of_them)
    return {"runs": len(of_them), "late": late, "gone": sum(gone for _, gone in of_them)}
