"""Limits: between several sources the smallest wins."""

from hypothesis import given
from hypothesis import strategies as st

from remit.model.limits import LIMIT_NAMES, NO_LIMITS, Limits

BOUNDS = st.none() | st.integers(0, 9)
LIMITS = st.builds(Limits, *[BOUNDS] * len(LIMIT_NAMES))


def test_the_smallest_of_two_wins_key_by_key() -> None:
    one = Limits(max_children=5, max_depth=1)
    other = Limits(max_children=3, max_depth=4, max_concurrent=7)
    assert one.smallest(other) == Limits(max_children=3, max_depth=1, max_concurrent=7)


def test_zero_is_a_limit_and_absence_is_none() -> None:
    assert Limits(max_children=0).smallest(Limits(max_children=2)).max_children == 0
    assert NO_LIMITS.smallest(NO_LIMITS) == NO_LIMITS


def test_only_what_is_set_is_shown() -> None:
    assert Limits(max_depth=0, max_children=5).to_json() == {"max_children": 5, "max_depth": 0}


@given(LIMITS, LIMITS, LIMITS)
def test_neither_order_nor_grouping_nor_repetition_matters(a: Limits, b: Limits, c: Limits) -> None:
    assert a.smallest(b) == b.smallest(a)
    assert a.smallest(b).smallest(c) == a.smallest(b.smallest(c))
    assert a.smallest(a) == a == a.smallest(NO_LIMITS)


@given(LIMITS, LIMITS)
def test_joining_limits_never_raises_one(a: Limits, b: Limits) -> None:
    joined = a.smallest(b).to_json()
    assert all(joined[name] <= value for name, value in a.to_json().items())
