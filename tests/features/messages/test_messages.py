"""message:*: channels, and who hears what is said on them."""

from typing import Any

import msgspec
import pytest
from tests.features.messages.agent_desk import AgentDesk

from remit.features.messages.events import CHANNEL_LIMIT, DATA_LIMIT
from remit.kernel.bus.bus import MAX_SUBSCRIPTIONS


@pytest.fixture
def board() -> AgentDesk:
    return AgentDesk()


async def test_what_is_said_on_a_channel_reaches_those_who_listen_there(
    board: AgentDesk,
) -> None:
    ann, bob, cleo = (board.line(name) for name in ("ann", "bob", "cleo"))
    assert await bob.ask("message:subscribe", {"channels": ["team/b", "team/a"]}) == {
        "channels": ["team/a", "team/b"]
    }
    await cleo.ask("message:subscribe", {"channels": ["elsewhere"]})
    said = await ann.ask("message:publish", {"channel": "team/a", "data": {"n": 1}})
    assert said == {"delivered": 1}
    (notice,) = bob.heard
    assert (notice.event, notice.origin) == ("message:publish", "ann")
    assert notice.data == {"channel": "team/a", "data": {"n": 1}}
    assert ann.heard == cleo.heard == []


async def test_a_connection_that_listens_twice_hears_once(board: AgentDesk) -> None:
    ann, bob = board.line("ann"), board.line("bob")
    await bob.ask("message:subscribe", {"channels": ["team", "team"]})
    await bob.ask("message:subscribe", {"channels": ["team"]})
    await bob.ask("event:subscribe", {"patterns": ["message:*", "*"]})
    assert await ann.ask("message:publish", {"channel": "team", "data": 1}) == {"delivered": 1}
    assert len(bob.heard) == 1


async def test_subscriptions_belong_to_a_connection_and_end_with_it(board: AgentDesk) -> None:
    ann, first, second = board.line("ann"), board.line("bob"), board.line("bob")
    await first.ask("message:subscribe", {"channels": ["team"]})
    await first.ask("event:subscribe", {"patterns": ["state:*"]})
    assert await first.ask("message:subscriptions") == {
        "channels": ["team"], "patterns": ["state:*"],
    }  # fmt: skip
    assert await second.ask("message:subscriptions") == {"channels": [], "patterns": []}
    board.hang_up(first)
    assert await ann.ask("message:publish", {"channel": "team", "data": 1}) == {"delivered": 0}


async def test_after_unsubscribing_nothing_is_heard(board: AgentDesk) -> None:
    ann, bob = board.line("ann"), board.line("bob")
    await bob.ask("message:subscribe", {"channels": ["team", "other"]})
    left = await bob.ask("message:unsubscribe", {"channels": ["team", "never"]})
    assert left == {"channels": ["other"]}
    assert await ann.ask("message:publish", {"channel": "team", "data": 1}) == {"delivered": 0}
    assert bob.heard == []


async def test_messages_of_one_publisher_arrive_in_the_order_they_were_sent(
    board: AgentDesk,
) -> None:
    ann, bob = board.line("ann"), board.line("bob")
    await bob.ask("message:subscribe", {"channels": ["a", "b"]})
    for number in range(100):
        await ann.ask("message:publish", {"channel": "ab"[number % 2], "data": number})
    assert [notice.data["data"] for notice in bob.heard] == list(range(100))


@pytest.mark.parametrize(
    "channel",
    [
        "",
        " ",
        "a b",
        "-a",
        "ä",
        "a\n",
        "a\nb",
        "a\x00",
        "*",
        "team/*",
        "x" * (CHANNEL_LIMIT + 1),
        1,
    ],
)
async def test_a_channel_that_nobody_could_read_is_refused(
    board: AgentDesk, channel: object
) -> None:
    ann = board.line("ann")
    said = await ann.answer("message:publish", {"channel": channel, "data": 1})
    assert said.error is not None
    assert (said.error.code, said.error.details) == ("invalid_data", {"path": "$.channel"})
    assert await ann.refused("message:subscribe", {"channels": [channel]}) == "invalid_data"
    assert await ann.ask("message:subscriptions") == {"channels": [], "patterns": []}


@pytest.mark.parametrize("channel", ["a", "x" * CHANNEL_LIMIT, "team/a:b@c.d_e-f", "9"])
async def test_a_channel_that_people_can_read_is_fine(board: AgentDesk, channel: str) -> None:
    await board.line("ann").ask("message:subscribe", {"channels": [channel]})


async def test_data_have_a_largest_size(board: AgentDesk) -> None:
    ann = board.line("ann")
    fits = {"channel": "a", "data": "x" * (DATA_LIMIT - 2)}
    assert await ann.ask("message:publish", fits) == {"delivered": 0}
    too_much = {"channel": "a", "data": "x" * (DATA_LIMIT - 1)}
    assert await ann.refused("message:publish", too_much) == "too_large"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(msgspec.msgpack.Ext(1, b"x"), id="an-extension-type"),
        pytest.param(1 << 70, id="a-number-that-msgpack-lacks"),
        pytest.param({(1, 2): 3}, id="a-key-that-json-lacks"),
    ],
)
async def test_data_that_some_listener_could_not_be_sent_are_refused(
    board: AgentDesk, data: Any
) -> None:
    ann, bob = board.line("ann"), board.line("bob")
    await bob.ask("message:subscribe", {"channels": ["a"]})
    assert await ann.refused("message:publish", {"channel": "a", "data": data}) == "invalid_data"
    assert bob.heard == []


async def test_a_connection_asks_for_a_bounded_number_of_things(board: AgentDesk) -> None:
    ann = board.line("ann")
    some = [f"c{number}" for number in range(MAX_SUBSCRIPTIONS)]
    assert await ann.refused("message:subscribe", {"channels": [*some, "more"]}) == "invalid_data"
    await ann.ask("message:subscribe", {"channels": some})
    assert await ann.refused("message:subscribe", {"channels": ["more"]}) == "limit_exceeded"
    assert await ann.refused("event:subscribe", {"patterns": ["a:*"]}) == "limit_exceeded"


async def test_a_caller_without_a_connection_is_told_where_to_subscribe(
    board: AgentDesk,
) -> None:
    for event, data in (
        ("message:subscribe", {"channels": ["a"]}),
        ("message:unsubscribe", {"channels": ["a"]}),
        ("message:subscriptions", {}),
        ("event:subscribe", {"patterns": ["*"]}),
        ("event:unsubscribe", {"patterns": ["*"]}),
    ):
        answer = await board.desk.answer("operator", event, data)
        assert answer.error is not None
        assert answer.error.code == "conflict"
        assert "socket" in answer.error.hint
    assert await board.desk.ask("operator", "message:publish", {"channel": "a", "data": 1}) == {
        "delivered": 0
    }
