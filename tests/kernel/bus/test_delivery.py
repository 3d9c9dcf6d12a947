"""Nothing reaches anybody who may not see it at that moment."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import Desk, built_in_handlers, texts
from tests.listeners import FakePost, Listener

from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import Registry
from remit.model.event import Notice
from remit.model.names import EventPattern
from remit.model.principal import Agent, AgentSpec

CATALOGUE = """
  talk: {description: x, event_patterns: [message:publish, message:subscribe, message:direct]}
  hear: {description: x, event_patterns: [message:subscribe]}
  state: {description: x, event_patterns: ["state:*"]}
"""
FILES = texts(
    CATALOGUE,
    talker="capabilities: {talk: true}",
    hearer="capabilities: {hear: true}",
    keeper="capabilities: {state: true}",
    nobody="capabilities: {}",
)


@pytest.fixture
def desk() -> Desk:
    return Desk(built_in_handlers(), FILES)


def listen(desk: Desk, name: str, profile: str, *asked: str, channels: str = "") -> Listener:
    """A connection of an agent that has just asked for patterns and channels."""
    hold(desk, name, profile)
    listener = Listener(name)
    patterns = [EventPattern.parse(text) for text in asked]
    desk.kernel.delivery.bus.subscribe(listener, patterns=patterns, channels=channels.split())
    if not isinstance(desk.kernel.delivery.post, FakePost):
        desk.kernel.delivery.post = FakePost()
    desk.kernel.delivery.post.listeners.append(listener)
    return listener


def hold(desk: Desk, name: str, profile: str) -> None:
    agent = Agent(id=name, spec=AgentSpec(profile=profile))
    fleet = desk.authority.fleet
    (fleet.replace if name in fleet else fleet.add)(agent)


def test_a_wildcard_means_what_the_listener_may_see(desk: Desk) -> None:
    keeper = listen(desk, "kim", "keeper", "*")
    nobody = listen(desk, "ned", "nobody", "*", "state:set")
    operator = Listener("operator")
    desk.kernel.delivery.bus.subscribe(operator, patterns=[EventPattern.parse("*")])
    assert desk.kernel.delivery.publish("state:set", 1, "ann") == 2
    assert desk.kernel.delivery.publish("config:changed", 2, "ann") == 1
    assert keeper.events == [("state:set", 1)]
    assert nobody.events == []
    assert operator.events == [("state:set", 1), ("config:changed", 2)]


def test_a_grant_that_is_narrowed_between_two_messages_stops_the_second(desk: Desk) -> None:
    kim = listen(desk, "kim", "keeper", "state:*")
    delivery = desk.kernel.delivery
    assert delivery.publish("state:set", 1, "ann") == 1
    hold(desk, "kim", "nobody")
    assert delivery.publish("state:set", 2, "ann") == 0
    hold(desk, "kim", "keeper")
    assert delivery.publish("state:set", 3, "ann") == 1
    assert kim.events == [("state:set", 1), ("state:set", 3)]


def test_an_edit_of_the_definitions_stops_the_next_message(desk: Desk) -> None:
    kim = listen(desk, "kim", "keeper", "state:*")
    desk.files = texts(CATALOGUE, keeper="capabilities: {}")
    desk.authority.put_in_force(desk.authority.prepare())
    assert desk.kernel.delivery.publish("state:set", 1, "ann") == 0
    assert kim.events == []


def test_a_principal_that_is_gone_hears_nothing_though_its_subscription_stands(desk: Desk) -> None:
    kim = listen(desk, "kim", "keeper", "*", channels="team")
    desk.authority.fleet.remove(["kim"])
    delivery = desk.kernel.delivery
    assert delivery.publish("state:set", 1, "ann") == delivery.publish_on("team", 1, "ann") == 0
    assert delivery.tell("kim", "message:direct", 1, "ann") == 0
    assert kim.events == []


def test_a_channel_reaches_its_members_and_those_who_watch_messages_each_once(desk: Desk) -> None:
    both = listen(desk, "bea", "talker", "message:*", channels="team")
    member = listen(desk, "mel", "hearer", channels="team")
    watcher = listen(desk, "wim", "talker", "message:publish")
    elsewhere = listen(desk, "eli", "hearer", channels="other")
    # It may listen to channels that it knows, which is less than to hear every message.
    curious = listen(desk, "cat", "hearer", "message:*")
    assert desk.kernel.delivery.publish_on("team", "hi", "ann") == 3
    heard = [("message:publish", {"channel": "team", "data": "hi"})]
    assert both.events == member.events == watcher.events == heard
    assert elsewhere.events == curious.events == []


def test_a_member_that_may_no_longer_listen_hears_nothing(desk: Desk) -> None:
    member = listen(desk, "mel", "hearer", channels="team")
    hold(desk, "mel", "keeper")
    assert desk.kernel.delivery.publish_on("team", "hi", "ann") == 0
    assert member.events == []


def test_a_connection_that_is_gone_is_not_counted(desk: Desk) -> None:
    stays = listen(desk, "mel", "hearer", channels="team")
    listen(desk, "mia", "hearer", channels="team").gone = True
    assert desk.kernel.delivery.publish_on("team", "hi", "ann") == 1
    assert len(stays.heard) == 1


def test_without_a_face_nobody_is_told(desk: Desk) -> None:
    listen(desk, "kim", "talker", "*")
    desk.kernel.delivery.post = None
    delivery = desk.kernel.delivery
    assert delivery.publish("message:publish", 1, "ann") == 0
    assert delivery.tell("kim", "message:direct", 1, "ann") == 0


def test_what_is_told_to_one_agent_reaches_all_its_connections_and_nobody_else(desk: Desk) -> None:
    first, second = listen(desk, "kim", "talker"), listen(desk, "kim", "talker")
    other = listen(desk, "lou", "talker", "*")
    assert desk.kernel.delivery.tell("kim", "message:direct", {"message": 1}, "ann") == 2
    assert first.events == second.events == [("message:direct", {"message": 1})]
    assert other.events == []


class ThreadPost(FakePost):
    """Notes which thread brings what: the sockets of a face belong to the loop's."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def deliver(self, connection: Any, notice: Notice) -> bool:
        self.threads.add(threading.get_ident())
        return super().deliver(connection, notice)


@pytest.mark.parametrize("inline", [True, False])
async def test_what_a_handler_emits_is_delivered_by_the_loop_itself(*, inline: bool) -> None:
    registry = Registry()

    @registry.event_handler("lab:boil", capability="lab", inline=inline)
    def boil(ctx: Context) -> int:
        return ctx.emit("lab:boil", {"hot": True})

    files = texts("  lab: {description: x, event_patterns: ['lab:*']}", p="capabilities: [lab]")
    desk = Desk(registry.handlers(), files)
    watcher = listen(desk, "kim", "p", "lab:*")
    post = desk.kernel.delivery.post = ThreadPost()
    assert await desk.ask("p", "lab:boil") == 1
    assert [(one.event, one.data, one.origin) for one in watcher.heard] == [
        ("lab:boil", {"hot": True}, "ann")
    ]
    assert post.threads == {threading.get_ident()}


PROFILES = st.sampled_from(["talker", "hearer", "keeper", "nobody"])
SAID = st.sampled_from(["state:set", "state:get", "message:direct", "config:changed", "no:such"])


@given(st.lists(st.tuples(st.sampled_from("abc"), PROFILES, SAID), max_size=12))
def test_delivery_never_shows_what_a_check_denies(steps: list[tuple[str, str, str]]) -> None:
    desk = Desk(built_in_handlers(), FILES)
    listeners = {name: listen(desk, name, "nobody", "*") for name in "abc"}
    for name, profile, event in steps:
        hold(desk, name, profile)
        before = {one: len(listener.heard) for one, listener in listeners.items()}
        desk.kernel.delivery.publish(event, None, "ann")
        for one, listener in listeners.items():
            principal = desk.authority.fleet.principal(one)
            assert principal is not None
            allowed = event in desk.authority.grant(principal).events
            assert len(listener.heard) - before[one] == allowed
