"""Reading pushed events asynchronously."""

from typing import Self

import anyio

from remit_client.inbox import Inbox
from remit_client.wire import Push


class Subscription(Inbox):
    """An asynchronous iterator of pushed events; it ends only by an error or with its block."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        super().__init__(patterns)
        self._arrived = anyio.Event()

    def notify(self) -> None:
        """Wake the reader."""
        self._arrived.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Push:
        while (push := self.take()) is None:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return push
