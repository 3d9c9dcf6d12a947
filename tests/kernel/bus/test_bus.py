"""Who hears what inside one process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import LimitError
from remit.kernel.bus import bus as local
from remit.kernel.bus.bus import MAX_SUBSCRIPTIONS, LocalBus
from remit.model.names import EventPattern

PATTERNS = st.sampled_from(["*", "a:*", "a:x", "a:x*", "b:*", "b:y", "c:none"])
EVENTS = ["a:x", "a:xy", "a:z", "b:y", "b:z", "d:w"]


def patterns(*texts: str) -> list[EventPattern]:
    return [EventPattern.parse(text) for text in texts]


def test_hearers_are_told_in_the_order_of_subscribing_and_each_once() -> None:
    bus: LocalBus[str] = LocalBus()
    bus.subscribe("ann", patterns=patterns("state:*", "state:set"))
    bus.subscribe("bob", patterns=patterns("*"))
    bus.subscribe("cleo", patterns=patterns("state:get"))
    bus.subscribe("ann", patterns=patterns("*"))
    assert bus.hearers("state:set") == ("ann", "bob")


def test_a_channel_and_a_pattern_of_one_name_are_two_things() -> None:
    bus: LocalBus[str] = LocalBus()
    bus.subscribe("ann", channels=["state:set"])
    assert bus.hearers("state:set") == ()
    assert bus.on_channel("state:set") == ("ann",)


def test_what_is_taken_back_is_no_longer_heard_and_the_rest_is() -> None:
    bus: LocalBus[str] = LocalBus()
    bus.subscribe("ann", patterns=patterns("a:*", "b:*"), channels=["one", "two"])
    assert bus.hearers("a:x") == ("ann",)
    bus.unsubscribe("ann", patterns=patterns("a:*", "never:asked"), channels=["one", "never"])
    assert (bus.hearers("a:x"), bus.hearers("b:x")) == ((), ("ann",))
    assert (bus.on_channel("one"), bus.on_channel("two")) == ((), ("ann",))


def test_a_subscriber_that_is_gone_leaves_nothing_behind() -> None:
    bus: LocalBus[str] = LocalBus()
    bus.subscribe("ann", patterns=patterns("a:*"), channels=["one"])
    bus.drop("ann")
    bus.drop("ann")
    bus.unsubscribe("ann", channels=["one"])
    assert bus.subscriptions("ann").is_empty
    assert (bus._subscriptions, bus._channels, bus._matches) == ({}, {}, {})


def test_too_many_subscriptions_are_refused_all_together() -> None:
    bus: LocalBus[str] = LocalBus()
    bus.subscribe("ann", channels=[f"c{number}" for number in range(MAX_SUBSCRIPTIONS - 1)])
    with pytest.raises(LimitError) as caught:
        bus.subscribe("ann", patterns=patterns("a:*"), channels=["another"])
    assert caught.value.details == {"limit": MAX_SUBSCRIPTIONS}
    assert bus.on_channel("another") == bus.hearers("a:x") == ()
    bus.subscribe("ann", channels=["c0", "another"])
    bus.subscribe("bob", channels=["another"])


def test_a_flood_of_names_does_not_become_a_flood_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "_CACHE_SIZE", 10)
    bus: LocalBus[str] = LocalBus()
    bus.subscribe("ann", patterns=patterns("a:*"))
    for number in range(100):
        assert bus.hearers(f"a:{number}") == ("ann",)
    assert len(bus._matches) <= 10


@given(
    st.lists(
        st.tuples(st.sampled_from(["+", "-", "drop"]), st.sampled_from("xyz"), PATTERNS),
        max_size=20,
    )
)
def test_the_cache_never_answers_other_than_a_look_at_every_subscription(
    steps: list[tuple[str, str, str]],
) -> None:
    bus: LocalBus[str] = LocalBus()
    model: dict[str, set[str]] = {}
    for step, who, text in steps:
        if step == "+":
            bus.subscribe(who, patterns=patterns(text))
            model.setdefault(who, set()).add(text)
        elif step == "-":
            bus.unsubscribe(who, patterns=patterns(text))
            model.get(who, set()).discard(text)
        else:
            bus.drop(who)
            model.pop(who, None)
        for event in EVENTS:
            heard = {
                one
                for one, asked in model.items()
                if any(p.covers(event) for p in patterns(*asked))
            }
            assert set(bus.hearers(event)) == heard
            assert len(bus.hearers(event)) == len(heard)
