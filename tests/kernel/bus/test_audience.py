"""Who may see an event is remembered between two messages, and never for longer than it is true."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import Desk, built_in_handlers, texts
from tests.family import CATALOGUE, PROFILES
from tests.features.messages.circle import SESSIONS, Circle
from tests.listeners import FakePost, Listener

from remit.config.definitions.files import Files
from remit.kernel.bus import delivery as couriers
from remit.kernel.bus.delivery import Delivery
from remit.model.grant import Narrowing, Session
from remit.model.names import EventPattern
from remit.model.principal import OPERATOR_ID, Agent, AgentSpec

EVENT = "system:stats"
"""The event that only the capability `web` gives."""

REVIEWED = CATALOGUE.replace("claude_tools: [WebFetch]}", "security_review_required: true}")


def files(**profiles: str) -> Files:
    return texts(REVIEWED + SESSIONS, **(PROFILES | profiles))


def listen(delivery: Delivery, name: str, *asked: str) -> Listener:
    """A connection that has just asked for patterns."""
    listener = Listener(name)
    delivery.bus.subscribe(listener, patterns=[EventPattern.parse(text) for text in asked])
    return listener


# ---- trying to hear more than one may ----

Change = Callable[[Circle, Listener], Awaitable[Any]]


async def update(circle: Circle, _kim: Listener) -> None:
    await circle.ask("operator", "agent:update", {"agent_id": "kim", "profile": "helper"})


async def narrow_the_parent(circle: Circle, _kim: Listener) -> None:
    data = {"agent_id": "ann", "disallowed_tools": [EVENT]}
    await circle.ask("operator", "agent:update", data)


async def terminate(circle: Circle, _kim: Listener) -> None:
    await circle.ask("operator", "agent:terminate", {"agent_id": "kim"})


async def terminate_the_parent(circle: Circle, _kim: Listener) -> None:
    await circle.ask("operator", "agent:terminate", {"agent_id": "ann"})


async def revoke_the_key_above(circle: Circle, _kim: Listener) -> None:
    await circle.ask("operator", "key:revoke", {"name": "cleo"})


async def reload(circle: Circle, _kim: Listener) -> None:
    circle.files = files(boss="capabilities: [write, talk, spawn]\n")
    await circle.ask("operator", "config:reload")


async def lose_the_review(circle: Circle, _kim: Listener) -> None:
    data = {"id": "boss/web", "decision": "reject", "note": "no more"}
    await circle.ask("operator", "review:decide", data)


async def narrow_the_session(circle: Circle, _kim: Listener) -> None:
    await circle.narrow("cleo", "job", disallowed_tools=[EVENT])


async def close_the_session(circle: Circle, _kim: Listener) -> None:
    await circle.ask("cleo", "session:close", {"session": "job"})


async def unsubscribe(circle: Circle, kim: Listener) -> None:
    circle.kernel.delivery.bus.unsubscribe(kim, patterns=[EventPattern.parse("system:*")])


async def hang_up(circle: Circle, kim: Listener) -> None:
    circle.kernel.delivery.bus.drop(kim)


@pytest.mark.parametrize(
    "change",
    [
        update, narrow_the_parent, terminate, terminate_the_parent, revoke_the_key_above, reload,
        lose_the_review, narrow_the_session, close_the_session, unsubscribe, hang_up,
    ],
)  # fmt: skip
async def test_what_is_taken_between_two_messages_stops_the_second(change: Change) -> None:
    circle = Circle(files())
    await circle.ask("operator", "review:decide", {"id": "boss/web", "decision": "approve"})
    await circle.client("cleo", "boss")
    await circle.open("cleo", "job")
    await circle.spawn("cleo", "ann", "boss", session="job")
    await circle.spawn("ann", "kim", "boss")
    delivery = circle.kernel.delivery
    kim = listen(delivery, "kim", "system:*")
    delivery.post = FakePost(kim)
    assert [delivery.publish(EVENT, at, "x") for at in range(3)] == [1, 1, 1]
    await change(circle, kim)
    assert [delivery.publish(EVENT, at, "x") for at in range(3)] == [0, 0, 0]
    assert [data for event, data in kim.events if event == EVENT] == [0, 1, 2]


async def test_what_is_given_between_two_messages_lets_the_second_through() -> None:
    circle = Circle(files())
    await circle.client("cleo", "boss")
    delivery = circle.kernel.delivery
    delivery.post = FakePost(listen(delivery, "cleo", "system:*"))
    assert delivery.publish(EVENT, 1, "x") == delivery.publish(EVENT, 2, "x") == 0
    await circle.ask("operator", "review:decide", {"id": "boss/web", "decision": "approve"})
    assert delivery.publish(EVENT, 3, "x") == 1


async def test_a_key_of_the_state_is_looked_at_in_every_message() -> None:
    circle = Circle(files())
    await circle.client("cleo", "corner")
    delivery = circle.kernel.delivery
    delivery.post = FakePost(listen(delivery, "cleo", "state:*"))
    keys = ["team/a/x", "team/b/x", "shared/x", "team/b/x", "team/a/x"]
    told = [delivery.publish("state:set", {"key": key}, "x") for key in keys]
    assert told == [1, 0, 1, 0, 1]


def test_a_flood_of_event_names_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couriers, "_REMEMBERED", 20)
    desk = Desk(built_in_handlers(), files())
    delivery = desk.kernel.delivery
    delivery.post = FakePost(*(listen(delivery, OPERATOR_ID, "*") for _ in range(4)))
    for at in range(100):
        delivery.publish(f"no:such{at}", None, "x")
        assert delivery.publish("system:health", at, "x") == 4
        remembered = delivery.bus.remembered
        assert len(remembered) + sum(map(len, remembered.values())) <= 20


def test_a_connection_that_is_gone_is_not_kept() -> None:
    desk = Desk(built_in_handlers(), files())
    delivery = desk.kernel.delivery
    operator = listen(delivery, OPERATOR_ID, "*")
    delivery.post = FakePost(operator)
    assert delivery.publish("system:health", 1, "x") == 1
    delivery.bus.drop(operator)
    assert delivery.bus.remembered == {}


# ---- the same as without remembering ----

NAMES = ["a", "b", "c", OPERATOR_ID]
PARENTS = {"a": None, "b": "a", "c": "b"}
ASKED = ["*", "system:*", "agent:spawn", "state:*"]
EVENTS = [EVENT, "agent:spawn", "message:direct", "state:set", "config:changed", "no:such"]
VERSIONS = [{}, {"boss": "capabilities: [talk, spawn]\n"}, {"helper": "capabilities: [web]\n"}]

PROFILE = st.sampled_from(["boss", "lead", "helper", "writer", "gone"])
NAME, AGENT = st.sampled_from(NAMES), st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("hold"), AGENT, PROFILE),
    st.tuples(st.just("remove"), AGENT),
    st.tuples(st.just("reload"), st.sampled_from(VERSIONS)),
    st.tuples(st.just("approve"), st.sampled_from([(), ("boss",), ("boss", "helper")])),
    st.tuples(st.just("session"), AGENT, st.sampled_from([None, EVENT, "agent:spawn"])),
    st.tuples(st.just("subscribe"), NAME, st.sampled_from(ASKED)),
    st.tuples(st.just("unsubscribe"), NAME, st.sampled_from(ASKED)),
    st.tuples(st.just("drop"), NAME),
)


class Stage:
    """A delivery under changes, beside a model that remembers nothing."""

    def __init__(self) -> None:
        self.desk = Desk(built_in_handlers(), files())
        self.fleet, self.delivery = self.desk.authority.fleet, self.desk.kernel.delivery
        self.listeners = {name: Listener(name) for name in NAMES}
        self.asked: dict[str, set[str]] = {name: set() for name in NAMES}
        self.delivery.post = FakePost(*self.listeners.values())
        self.sessions = 0

    def take(self, kind: str, *arguments: Any) -> None:
        getattr(self, kind)(*arguments)

    def hold(self, name: str, profile: str) -> None:
        parent = PARENTS[name]
        if parent is not None and parent not in self.fleet:
            return  # nobody is let in without its parent: see `Fleet.add`
        spec = AgentSpec(profile=profile, bound={"s": f"{name}-session"} if self.sessions else {})
        agent = Agent(id=name, parent=parent, spec=spec)
        (self.fleet.replace if name in self.fleet else self.fleet.add)(agent)

    def remove(self, name: str) -> None:
        self.fleet.remove(self.fleet.subtree(name))

    def reload(self, profiles: dict[str, str]) -> None:
        self.desk.files = files(**profiles)
        self.desk.authority.put_in_force(self.desk.authority.prepare())

    def approve(self, profiles: tuple[str, ...]) -> None:
        catalogue = self.desk.authority.catalogue
        self.desk.authority.approve(frozenset(catalogue.approval(one, "web") for one in profiles))

    def session(self, name: str, taken: str | None) -> None:
        self.sessions += 1
        steps = (Narrowing(disallowed_tools=(taken,)),) if taken else ()
        made = Session(id=f"{name}-session", name="s", owner=OPERATOR_ID, steps=steps)
        self.fleet.put_session(made)

    def subscribe(self, name: str, text: str) -> None:
        self.asked[name].add(text)
        listener = self.listeners[name]
        self.delivery.bus.subscribe(listener, patterns=[EventPattern.parse(text)])

    def unsubscribe(self, name: str, text: str) -> None:
        self.asked[name].discard(text)
        listener = self.listeners[name]
        self.delivery.bus.unsubscribe(listener, patterns=[EventPattern.parse(text)])

    def drop(self, name: str) -> None:
        self.asked[name].clear()
        self.delivery.bus.drop(self.listeners[name])

    def may_hear(self, name: str, event: str) -> bool:
        """The rule itself, from a copy of the fleet that has remembered nothing yet."""
        if not any(EventPattern.parse(text).covers(event) for text in self.asked[name]):
            return False
        current = self.desk.authority.current
        if name == OPERATOR_ID:
            return event in current.everything.events
        return event in self.fleet.copy().grant(name, current.catalogue).events

    def heard(self, event: str) -> set[str]:
        """Who is told when it is published now."""
        before = {name: len(one.heard) for name, one in self.listeners.items()}
        told = self.delivery.publish(event, {"key": "k"}, "x")
        found = {name for name, one in self.listeners.items() if len(one.heard) > before[name]}
        assert told == len(found)
        return found


@given(st.lists(STEPS, max_size=25))
def test_after_any_changes_exactly_those_hear_who_would_without_remembering(
    steps: list[tuple[Any, ...]],
) -> None:
    stage = Stage()
    for name in "abc":
        stage.hold(name, "boss")
    for name in NAMES:
        stage.subscribe(name, "*")
    stage.approve(("boss",))
    for step in [("hold", "c", "boss"), *steps]:
        stage.take(*step)
        for event in EVENTS:
            assert stage.heard(event) == {one for one in NAMES if stage.may_hear(one, event)}
