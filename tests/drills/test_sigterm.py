"""A daemon that is asked to end under load drains, and nobody hangs."""

from tests.drills.drill import figures_of


def test_a_daemon_that_is_asked_to_end_drains() -> None:
    figures = figures_of("sigterm", "--rounds", "3")
    assert figures["exits_0"] == figures["rounds"] == 3
    assert figures["acknowledged"]["set"] > 0
    assert figures["read"] > 0
