"""Limits: between several sources the smallest wins."""

from hypothesis import given
from hypothesis import strategies as st

from remit.model.limits import LIMIT_NAMES, NO_LIMITS, PREFIX_LIMIT, Limits, is_wider

BOUNDS = st.none() | st.integers(0, 9)
KEYS = st.text("ab/", max_size=4)
PREFIXES = st.none() | st.lists(KEYS, max_size=4).map(tuple)
LIMITS = st.builds(
    Limits, **{name: PREFIXES if name == PREFIX_LIMIT else BOUNDS for name in LIMIT_NAMES}
)


def allows(prefixes: tuple[str, ...] | None, key: str) -> bool:
    return prefixes is None or key.startswith(prefixes)


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
    joined = a.smallest(b)
    assert not any(is_wider(getattr(a, name), getattr(joined, name)) for name in LIMIT_NAMES)


@given(LIMITS, LIMITS, KEYS)
def test_a_key_is_allowed_under_joined_prefixes_just_when_both_allow_it(
    a: Limits, b: Limits, key: str
) -> None:
    both = allows(a.state_prefixes, key) and allows(b.state_prefixes, key)
    assert allows(a.smallest(b).state_prefixes, key) == both


def test_two_lists_keep_the_narrower_prefixes_and_nothing_common_is_nothing() -> None:
    one = Limits(state_prefixes=("team/a/", "shared/"))
    assert one.smallest(Limits(state_prefixes=("team/",))).state_prefixes == ("team/a/",)
    assert one.smallest(Limits(state_prefixes=("other/",))).state_prefixes == ()
    assert one.smallest(NO_LIMITS).state_prefixes == ("shared/", "team/a/")


def test_neither_order_nor_what_lies_under_another_prefix_means_anything() -> None:
    assert Limits(state_prefixes=("b/", "a/", "a/x")) == Limits(state_prefixes=("a/", "b/"))
