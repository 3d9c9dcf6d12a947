"""Plain functions: they run in worker threads, of which there are fewer than callers."""

from collections.abc import Callable
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec

from remit.errors import RemitError
from remit.runtime.context import Context
from remit.runtime.handler import Handler


async def run_in_thread(
    handler: Handler, data: Any, context: Context, lost: Callable[[], RemitError | None]
) -> Any:
    """Run a handler once a thread is free, unless its caller has lost the right meanwhile.

    Raises:
        RemitError: what `lost` says; waiting for a thread may take long.
    """
    async with anyio.to_thread.current_default_thread_limiter():
        if (error := lost()) is not None:
            raise error
        return await anyio.to_thread.run_sync(
            handler.call,
            data,
            _for_a_thread(context),
            abandon_on_cancel=True,
            limiter=anyio.CapacityLimiter(1),  # its place was taken above
        )


def _for_a_thread(context: Context) -> Context:
    """The same context, pushing through the loop: the socket of a face belongs to it."""
    return msgspec.structs.replace(context, through=anyio.from_thread.run_sync)
