"""The clock of everything that lapses."""

from collections.abc import Callable


class ForwardClock:
    """The wall clock; but when that is set back, time goes on from where it was.

    So nothing that counts until some moment counts longer than it was given. When the wall clock is
    set forward this one follows, and what lapses does so early.
    """

    def __init__(self, wall_clock: Callable[[], float], clock: Callable[[], float]) -> None:
        """Start with the present.

        Args:
            wall_clock: seconds since 1970; somebody may set it.
            clock: seconds since whenever; it never jumps.
        """
        self._wall_clock = wall_clock
        self._clock = clock
        self._read_at = clock()
        self._now = wall_clock()

    def __call__(self) -> float:
        """Seconds since 1970, never fewer than time has really passed since the last look."""
        read_at = self._clock()
        self._now = max(self._wall_clock(), self._now + read_at - self._read_at)
        self._read_at = read_at
        return self._now
