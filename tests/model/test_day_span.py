"""Spans of the day."""

import pytest

from remit.model.card import DaySpan, parse_day_span


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("08:00-17:30", ["08:00", "17:29"], ["07:59", "17:30"]),
        ("22:00-06:00", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "21:59"]),
        ("20:00-24:00", ["20:00", "23:59"], ["00:00", "19:59"]),
        ("00:00-24:00", ["00:00", "23:59"], []),
        ("morning", ["05:00", "11:59"], ["12:00", "04:59"]),
        ("night", ["22:00", "04:59"], ["05:00", "21:59"]),
    ],
)
def test_a_span_covers(text: str, inside: list[str], outside: list[str]) -> None:
    span = parse_day_span(text)
    assert span is not None
    assert all(span.covers(minutes(time)) for time in inside)
    assert not any(span.covers(minutes(time)) for time in outside)


def minutes(time: str) -> int:
    hours, _, rest = time.partition(":")
    return int(hours) * 60 + int(rest)


def test_the_parts_of_the_day_leave_no_minute_out_and_none_twice() -> None:
    spans = [parse_day_span(name) for name in ("morning", "afternoon", "evening", "night")]
    for minute in range(24 * 60):
        assert sum(span is not None and span.covers(minute) for span in spans) == 1


@pytest.mark.parametrize("text", ["", "noon", "8:00-9:00", "08:00", "08:60-09:00", "24:00-01:00"])
def test_what_is_no_span_is_none(text: str) -> None:
    assert parse_day_span(text) is None


def test_blanks_and_a_long_dash_are_understood() -> None:
    assert parse_day_span("08:00 \u2013 09:00") == DaySpan(480, 540)
