"""The rate limiter: a sliding minute on a clock that never jumps, and places that are freed."""

import pytest

from remit.kernel.dispatch.limits import RateLimiter
from remit.model.limits import NO_LIMITS, Limits


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_place_is_free_again_when_the_oldest_call_is_a_minute_old(clock: Clock) -> None:
    rate_limiter, limits = RateLimiter(clock), Limits(max_calls_per_minute=2)
    assert rate_limiter.admit("a", limits) is None
    clock.now = 20.0
    assert rate_limiter.admit("a", limits) is None
    assert rate_limiter.admit("a", limits) == ("max_calls_per_minute", 40.0)
    clock.now = 59.9
    assert rate_limiter.admit("a", limits) == ("max_calls_per_minute", 0.1)
    clock.now = 60.0
    assert rate_limiter.admit("a", limits) is None
    assert rate_limiter.calls("a") == 2


def test_a_refused_call_is_not_counted(clock: Clock) -> None:
    rate_limiter, limits = RateLimiter(clock), Limits(max_calls_per_minute=1)
    assert rate_limiter.admit("a", limits) is None
    for _ in range(5):
        assert rate_limiter.admit("a", limits) is not None
    clock.now = 60.0
    assert rate_limiter.admit("a", limits) is None


def test_zero_calls_are_no_calls(clock: Clock) -> None:
    assert RateLimiter(clock).admit("a", Limits(max_calls_per_minute=0)) is not None
    assert RateLimiter(clock).admit("a", Limits(max_concurrent=0)) is not None


def test_agents_are_counted_apart_and_without_limits_not_at_all(clock: Clock) -> None:
    rate_limiter, limits = RateLimiter(clock), Limits(max_calls_per_minute=1)
    assert rate_limiter.admit("a", limits) is None
    assert rate_limiter.admit("b", limits) is None
    assert rate_limiter.admit("c", NO_LIMITS) is None
    assert rate_limiter.calls("c") is None


def test_calls_at_once_are_those_that_have_begun_and_not_ended(clock: Clock) -> None:
    rate_limiter, limits = RateLimiter(clock), Limits(max_concurrent=1)
    rate_limiter.begin("a")
    refused = rate_limiter.admit("a", limits)
    assert refused is not None
    assert refused[0] == "max_concurrent"
    rate_limiter.end("a")
    assert rate_limiter.admit("a", limits) is None
    assert rate_limiter.running("a") == 0


def test_counts_of_those_who_are_gone_do_not_pile_up(clock: Clock) -> None:
    rate_limiter, limits = RateLimiter(clock), Limits(max_calls_per_minute=1)
    for at in range(20_000):
        clock.now = at * 0.5
        assert rate_limiter.admit(f"agent-{at}", limits) is None
    assert len(rate_limiter._calls) < 3000
