"""Waking the reader.

libzmq's descriptor is edge-triggered: any send may swallow the signal of a message that has just
arrived. So whoever sends outside the reader calls `wake`, and the reader looks again.
"""

import asyncio  # noqa: TID251  a lasting add_reader; see `Readiness`

import anyio


class Readiness:
    """Tells when the socket is worth looking at.

    The descriptor stays registered for the life of the socket: `anyio.wait_readable` registers and
    removes it at each wake-up, two system calls that a busy reader need not pay.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._event = anyio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self.wake)

    def wake(self) -> None:
        """Make the reader look at the socket."""
        self._event.set()

    async def wait(self, patience: float | None) -> None:
        """Return when there may be news, or after `patience` seconds."""
        if patience is None:
            await self._event.wait()
        else:
            with anyio.move_on_after(patience):
                await self._event.wait()
        self._event = anyio.Event()

    def close(self) -> None:
        """Stop listening to the descriptor."""
        self._loop.remove_reader(self._descriptor)
