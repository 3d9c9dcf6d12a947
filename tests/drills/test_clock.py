"""Nothing counts longer because the wall clock jumped, and nothing hangs."""

from tests.drills.drill import figures_of


def test_a_clock_that_jumps_gives_nobody_more_than_they_had() -> None:
    figures = figures_of("clock", "--rounds", "2")
    assert figures["jumps"] == 4
    assert figures["limit_exceeded"] > 0
    assert figures["approval_pending"] > 0
