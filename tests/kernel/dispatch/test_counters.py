"""Counts since the start: of whom, and what is forgotten."""

from remit.kernel.dispatch.counters import MOST_TALLIES, Counters


def test_a_denial_counts_for_the_daemon_and_for_whoever_is_known() -> None:
    counters = Counters()
    tally = counters.begin("ann")
    counters.deny("ann")
    counters.deny("a stranger")
    assert (counters.denied, tally.denied) == (2, 1)
    assert set(counters.by_caller) == {"ann"}


def test_those_who_came_first_make_room_for_newcomers() -> None:
    counters = Counters()
    for number in range(MOST_TALLIES + 1):
        counters.begin(f"n{number}")
    assert len(counters.by_caller) == MOST_TALLIES // 2 + 1
    assert "n0" not in counters.by_caller
    assert f"n{MOST_TALLIES}" in counters.by_caller
    assert f"n{MOST_TALLIES - 1}" in counters.by_caller


def test_two_daemons_in_a_process_do_not_share_their_counts() -> None:
    Counters().by_event["a:b"] = 1
    assert Counters().by_event == {}
