"""How an entry becomes green, flaky or red, and how it comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.registry.entry import (
    UNVERIFIED,
    HealthRecord,
    after_calls,
    after_tests,
    marked,
    now,
    submitted,
)

GREEN = after_tests(submitted(at=1.0), passed=True, at=2.0)


def called(record: HealthRecord, text: str) -> HealthRecord:
    """The health after calls, one after the other: `+` worked, `-` did not."""
    outcomes: list[bool] = []
    for at, sign in enumerate(text):
        outcomes.append(sign == "+")
        record = after_calls(record, outcomes, at=10.0 + at)
    return record


def test_what_passes_its_tests_is_green_and_what_does_not_is_rejected() -> None:
    assert GREEN.state == "green"
    assert after_tests(submitted(at=1.0), passed=False, at=2.0).state == "rejected"


def test_what_worked_once_is_red_when_a_test_fails_and_green_after_the_fix() -> None:
    red = after_tests(GREEN, passed=False, at=3.0, reason="case 2")
    assert (red.state, red.reason, red.at) == ("red", "case 2", 3.0)
    assert after_tests(red, passed=True, at=4.0).state == "green"


def test_no_tests_is_not_green_however_often_it_works() -> None:
    assert called(UNVERIFIED, "+" * 50).state == "unverified"
    assert UNVERIFIED.reason == "it has no tests"


def test_a_tool_without_tests_becomes_flaky_and_never_red() -> None:
    assert called(UNVERIFIED, "-" * 4).state == "unverified"
    assert called(UNVERIFIED, "-" * 50).state == "flaky"


def test_three_failures_in_a_row_put_a_proved_tool_in_quarantine() -> None:
    assert called(GREEN, "+++++--").state == "green"
    assert called(GREEN, "+++++---").state == "red"


def test_a_proved_tool_that_fails_now_and_then_is_flaky_first_and_then_red() -> None:
    flaky = called(GREEN, "+--+-")
    assert (flaky.state, flaky.reason) == ("flaky", "2 of its last 5 calls worked")
    assert called(GREEN, "+--+--+--+-----").state == "red"


def test_between_flaky_and_well_is_a_gap_so_that_it_does_not_flicker() -> None:
    states = [called(GREEN, "+--+-" + "+" * more).state for more in range(9)]
    back = states.index("green")
    assert back > 3
    assert set(states[:back]) == {"flaky"}
    assert called(UNVERIFIED, "-----" + "+" * 10).state == "unverified"


def test_calls_bring_nothing_out_of_quarantine() -> None:
    red = called(GREEN, "---")
    assert called(red, "+" * 30) == red
    assert called(submitted(at=1.0), "+" * 30).state == "pending"


def test_an_operator_may_say_that_it_is_well_or_not() -> None:
    bad = marked(UNVERIFIED, is_healthy=False, at=5.0, by="operator", reason="wrong sums")
    assert (bad.state, bad.reason) == ("red", "operator said so: wrong sums")
    good = marked(bad, is_healthy=True, at=6.0, by="operator", calls=7)
    assert (good.state, good.mended_after) == ("green", 7)
    assert called(good, "---").state == "red"


def test_a_server_that_is_down_makes_its_tools_unavailable_and_not_red() -> None:
    assert now(GREEN, unavailable_because="it is away").state == "unavailable"
    assert now(GREEN).state == "green"
    red = called(GREEN, "---")
    assert now(red, unavailable_because="it is away").state == "red"


RECORDS = st.sampled_from([UNVERIFIED, GREEN, called(GREEN, "+--+-"), called(UNVERIFIED, "-----")])


@given(RECORDS, st.lists(st.booleans(), max_size=40), st.floats(-1e9, 1e9))
def test_time_never_goes_back_and_every_change_says_why(
    record: HealthRecord, outcomes: list[bool], at: float
) -> None:
    found = after_calls(record, outcomes, at=at)
    assert found.at >= record.at
    assert found == record or (found.state != record.state and found.reason)
    if not (record.has_tests or record.was_green):
        assert found.state in ("unverified", "flaky")


@pytest.mark.parametrize("passed", [True, False])
def test_a_clock_that_goes_back_does_not_change_the_order(passed: bool) -> None:  # noqa: FBT001
    assert after_tests(GREEN, passed=passed, at=-5.0).at == GREEN.at
