"""How long to wait before a server is started again."""

import random

from remit.upstream.shapes import Limits


class Pauses:
    """Pauses that double while a server keeps failing, a little apart from each other's.

    One that had worked is started again at once, so that the next call finds it.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._failures = 0

    def next(self, *, ran: float | None) -> float:
        """Seconds until the next start.

        Args:
            ran: seconds that it worked before it failed; None: it never started.
        """
        if ran is not None and ran >= self._limits.well_after:
            self._failures = 0
        free = ran is not None and self._failures == 0
        self._failures += 1
        if free:
            return 0.0
        doubled = self._limits.first_pause * 2.0 ** min(self._failures - 1, 30)
        # Many servers that failed together should not start together.
        return min(doubled, self._limits.longest_pause) * random.uniform(0.5, 1.0)  # noqa: S311
