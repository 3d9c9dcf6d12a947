"""Who is given cards: a stable share of sessions, and a count that trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.cards.scorers import is_chosen, session_key, share_of
from remit.features.cards.store import DAY, MAX_SESSIONS, Ledger

KEYS = [session_key("ann", str(number)) for number in range(2_000)]


@given(st.text(), st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_takes_nobody_out(who: str, session: str, one: float, two: float) -> None:
    key = session_key(who, session)
    small, large = sorted((one, two))
    assert is_chosen(key, large) or not is_chosen(key, small)
    assert is_chosen(key, 1.0)
    assert not is_chosen(key, 0.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_share_is_about_that_share_of_the_sessions(share: float) -> None:
    assert sum(is_chosen(key, share) for key in KEYS) == pytest.approx(share * len(KEYS), abs=70)


def test_sessions_of_two_callers_have_nothing_in_common() -> None:
    assert session_key("ann", "x") != session_key("bob", "x")
    assert session_key("a", "bx") != session_key("ab", "x")


def test_once_types_are_listed_the_others_get_none_unless_the_star_says() -> None:
    assert share_of({}, "main") == 1.0
    assert share_of({"main": 0.25}, "main") == 0.25
    assert share_of({"main": 0.25}, "isolated") == 0.0
    assert share_of({"main": 0.25, "*": 0.1}, "isolated") == 0.1


def test_it_is_over_only_with_enough_sessions_and_above_the_share() -> None:
    ledger = Ledger()
    for number in range(19):
        ledger.count(str(number), 0.0, injected=True)
    assert not ledger.is_over(0.5, 0.0)
    ledger.count("19", 0.0, injected=False)
    assert ledger.is_over(0.5, 0.0)
    assert not ledger.is_over(0.95, 0.0)  # 19 of 20 is not more than that
    assert not ledger.is_over(1.0, 0.0)


def test_a_session_counts_once_however_many_turns_it_has() -> None:
    ledger = Ledger()
    for turn in range(100):
        ledger.count("one", float(turn), injected=turn == 50)
    assert ledger.share(100.0) == (1, 1)


def test_what_is_older_than_a_day_does_not_count() -> None:
    ledger = Ledger()
    ledger.count("old", 0.0, injected=True)
    ledger.count("both", 1.0, injected=True)
    assert ledger.share(DAY - 1) == (2, 2)
    ledger.count("both", DAY, injected=False)
    assert ledger.share(DAY) == (1, 1)  # the injection of "both" was at 1.0
    assert ledger.share(DAY + 1) == (0, 1)


def test_it_is_bounded_and_keeps_the_latest() -> None:
    ledger = Ledger()
    for number in range(MAX_SESSIONS + 10):
        ledger.count(str(number), 0.0, injected=number < 10)
    assert ledger.share(0.0) == (0, MAX_SESSIONS)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 3 * DAY), st.booleans())))
def test_a_restart_changes_no_count(turns: list[tuple[str, float, bool]]) -> None:
    straight, interrupted = Ledger(), Ledger()
    for key, at, injected in sorted(turns, key=lambda turn: turn[1]):
        straight.count(key, at, injected=injected)
        interrupted = Ledger(interrupted.kept())
        interrupted.count(key, at, injected=injected)
    assert interrupted.share(3 * DAY) == straight.share(3 * DAY)
