"""How fast a stranger is listened to."""

import anyio


class Pace:
    """So much in a second, and not more: whoever writes faster waits for us.

    A server that floods us is slowed by its own full pipe, and costs no more than this.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = 0.0
        self._count = 0

    async def spend(self, amount: int = 1) -> None:
        """Count something, and wait when it was too much."""
        now = anyio.current_time()
        if now - self._since >= 1:
            self._since, self._count = now, 0
        self._count += amount
        if self._count > self._most:
            await anyio.sleep(self._since + 1 - now)
