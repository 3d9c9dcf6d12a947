"""A subscriber that does not read harms nobody else, and hears of each message that it missed."""

from tests.drills.drill import figures_of


def test_slow_subscribers_and_storms_cost_only_those_who_do_not_read() -> None:
    figures = figures_of(
        "subscribers", "--subscribers", "20", "--messages", "50", "--storm", "2000"
    )
    assert figures["subscribers"] == 20
    assert figures["asleep_missed"] == figures["dropped"] > 0
    assert figures["storm_dropped"] > 0
    assert figures["untold"] == 0
    assert figures["health_answers"] > 0
