"""The module of handlers that the acceptance tests put into a daemon, as an operator would."""

TEXT = '''
import time

import anyio

from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler


@event_handler("lab:fail", capability="lab")
async def fail() -> None:
    """Fail by mistake."""
    raise RuntimeError("a secret of the inside")


@event_handler("lab:fail_now", capability="lab", inline=True)
def fail_now() -> None:
    """Fail by mistake in the reader itself."""
    raise RuntimeError("a secret of the inside")


@event_handler("lab:exit", capability="lab")
async def leave() -> None:
    """Call exit, as a careless author may."""
    raise SystemExit(7)


@event_handler("lab:own_timeout", capability="lab")
async def own_timeout() -> None:
    """Run into a time-out of something else."""
    raise TimeoutError("another machine did not answer")


@event_handler("lab:wait", capability="lab")
async def wait(ctx: Context, seconds: float) -> dict:
    """Wait, saying so before."""
    ctx.report(0, seconds, "waiting")
    await anyio.sleep(seconds)
    return {"waited": seconds}


@event_handler("lab:block", capability="lab")
def block(ctx: Context, seconds: float) -> dict:
    """Block a worker thread, deaf to everything, saying so before."""
    ctx.report(0, seconds, "blocking")
    time.sleep(seconds)
    return {"blocked": seconds}


@event_handler("lab:short", capability="lab", timeout=0.05)
async def short() -> None:
    """Take longer than it may."""
    await anyio.sleep(30)


@event_handler("lab:count", capability="lab")
async def count(ctx: Context, to: int) -> dict:
    """Report every step."""
    for step in range(1, to + 1):
        ctx.report(step, to, f"step {step}")
        await anyio.lowlevel.checkpoint()
    return {"counted": to}


@event_handler("lab:unencodable", capability="lab", inline=True)
def unencodable() -> object:
    """Answer with something that no wire can carry."""
    return object()
'''

CAPABILITY = """
  lab:
    description: Experiments
"""
