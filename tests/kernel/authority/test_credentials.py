"""The clock by which things lapse follows the wall clock forward, and never back."""

from hypothesis import given
from hypothesis import strategies as st

from remit.kernel.authority.keyring import ForwardClock

STEPS = st.lists(st.tuples(st.integers(0, 1000), st.integers(-(10**6), 10**6)), max_size=20)


class Times:
    def __init__(self) -> None:
        self.wall, self.ticks = 1_000_000.0, 0.0
        self.clock = ForwardClock(lambda: self.wall, lambda: self.ticks)


def test_it_is_the_wall_clock_as_long_as_nobody_sets_that() -> None:
    times = Times()
    times.wall, times.ticks = times.wall + 5, times.ticks + 5
    assert times.clock() == times.wall


def test_it_follows_the_wall_clock_forward() -> None:
    times = Times()
    times.wall += 86_400
    assert times.clock() == times.wall


def test_it_goes_on_when_the_wall_clock_is_set_back() -> None:
    times = Times()
    before = times.clock()
    times.wall, times.ticks = times.wall - 3600, times.ticks + 5
    assert times.clock() == before + 5


@given(STEPS)
def test_it_is_never_slower_than_time_itself(steps: list[tuple[int, int]]) -> None:
    times = Times()
    start = times.clock()
    for seconds, jump in steps:
        before = times.clock()
        times.ticks += seconds
        times.wall += seconds + jump
        assert times.clock() >= before + seconds
    assert times.clock() >= start + times.ticks
