"""How many fetches run at once: each may hold some megabytes for half a minute."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from remit.errors import LimitError

IN_ALL = 32
OF_ONE_TREE = 4
"""So that no agent, with all its children, takes the places of all others."""


class FetchSlots:
    """Places for fetches; one too many of a tree is refused, one too many in all waits."""

    def __init__(self) -> None:
        self._places = anyio.CapacityLimiter(IN_ALL)
        self._taken: Counter[str] = Counter()

    @asynccontextmanager
    async def place(self, root: str) -> AsyncGenerator[None]:
        """Hold a place for the tree of agents under `root`.

        Raises:
            LimitError: the tree has all that it gets.
        """
        if self._taken[root] >= OF_ONE_TREE:
            raise LimitError(
                f"{OF_ONE_TREE} fetches of yours are under way",
                hint="wait for one of them",
                details={"limit": "web_fetch", "retry_after": 1.0},
            )
        self._taken[root] += 1
        try:
            async with self._places:
                yield
        finally:
            self._taken[root] -= 1
            self._taken += Counter()  # forget who has none


SLOTS = FetchSlots()
