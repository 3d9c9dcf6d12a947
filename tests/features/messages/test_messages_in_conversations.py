"""conversation:*: channels that only their participants use."""

import pytest
from tests.features.messages.agent_desk import AgentDesk, Line

from remit.kernel.bus import conversations
from remit.model.principal import Agent, AgentSpec


@pytest.fixture
def board() -> AgentDesk:
    """Lead with two helpers, and a stranger."""
    board = AgentDesk()
    board.line("lead")
    board.line("tim", parent="lead")
    board.line("tom", parent="lead")
    board.line("eve")
    return board


async def open_one(line: Line, *participants: str) -> str:
    made = await line.ask("conversation:create", {"name": "plan", "participants": [*participants]})
    return str(made["channel"])


async def test_participants_talk_and_nobody_else_hears(board: AgentDesk) -> None:
    lead, tim, tom = board.line("lead"), board.line("tim"), board.line("tom")
    channel = await open_one(lead, "tim")
    await tim.ask("message:subscribe", {"channels": [channel]})
    await tom.ask("event:subscribe", {"patterns": ["message:*"]})
    said = await lead.ask("message:publish", {"channel": channel, "data": "hi"})
    assert said == {"delivered": 1}
    assert (len(tim.heard), tom.heard) == (1, [])


@pytest.mark.parametrize("who", ["tom", "eve"])
async def test_others_hear_the_same_as_about_a_conversation_that_is_not_there(
    board: AgentDesk, who: str
) -> None:
    channel, other = await open_one(board.line("lead"), "tim"), board.line(who)
    nowhere = "conversation/" + "0" * 32
    for event, data in (
        ("message:publish", {"channel": "{}", "data": 1}),
        ("message:subscribe", {"channels": ["{}", "fine"]}),
    ):
        answers = []
        for asked in (channel, nowhere):
            filled = {
                name: asked if value == "{}" else [asked] if isinstance(value, list) else value
                for name, value in data.items()
            }
            answer = await other.answer(event, filled)
            assert answer.error is not None
            answers.append((answer.error.code, answer.error.message.replace(asked, "_")))
        assert answers[0] == answers[1]
        assert answers[0][0] == "not_found"
    assert await other.ask("message:subscriptions") == {"channels": [], "patterns": []}


async def test_active_lists_what_the_caller_takes_part_in(board: AgentDesk) -> None:
    lead, tim, eve = board.line("lead"), board.line("tim"), board.line("eve")
    channels = {await open_one(lead, "tim"), await open_one(lead)}
    assert {
        item["channel"] for item in (await lead.ask("conversation:active"))["items"]
    } == channels
    (item,) = (await tim.ask("conversation:active"))["items"]
    assert (item["name"], item["creator"], item["participants"]) == (
        "plan",
        "lead",
        ["lead", "tim"],
    )
    assert await eve.ask("conversation:active") == {"items": [], "total": 0, "next": None}
    first = await lead.ask("conversation:active", {"limit": 1})
    rest = await lead.ask("conversation:active", {"limit": 1, "after": first["next"]})
    assert (first["total"], rest["next"]) == (2, None)
    assert first["items"] != rest["items"]


async def test_only_agents_of_ones_own_tree_are_brought_in(board: AgentDesk) -> None:
    data = {"participants": ["eve"]}
    assert await board.line("lead").refused("conversation:create", data) == "unknown_agent"
    data = {"participants": ["nobody"]}
    assert await board.line("lead").refused("conversation:create", data) == "unknown_agent"
    await open_one(board.line("tim"), "lead")
    assert await board.line("eve").refused("conversation:create", {"participants": ["tim"]}) == (
        "unknown_agent"
    )
    await open_one(board.line("operator"), "eve", "tim")


async def test_siblings_share_a_conversation_without_their_parent(board: AgentDesk) -> None:
    lead, tim, tom = board.line("lead"), board.line("tim"), board.line("tom")
    channel = await open_one(tim, "tom")
    for one in (tim, tom):
        await one.ask("message:subscribe", {"channels": [channel]})
    assert await tom.ask("message:publish", {"channel": channel, "data": 1}) == {"delivered": 2}
    assert (len(tim.heard), len(tom.heard)) == (1, 1)
    assert await lead.refused("message:subscribe", {"channels": [channel]}) == "not_found"


FAMILY = {
    "ann": None,
    "a1": "ann",
    "a2": "ann",
    "a11": "a1",
    "a21": "a2",
    "bob": None,
    "b1": "bob",
}


@pytest.mark.parametrize("caller", [*FAMILY, "operator"])
async def test_whom_one_may_send_a_message_one_may_share_a_conversation_with(caller: str) -> None:
    board = AgentDesk()
    for name, parent in FAMILY.items():
        board.line(name, parent=parent)
    one, reached = board.line(caller), set()
    for other in [*FAMILY, "operator", "nobody"]:
        sent = await one.answer("agent:send_message", {"agent_id": other, "message": 1})
        opened = await one.answer("conversation:create", {"participants": [other]})
        assert {sent.error and sent.error.code, opened.error and opened.error.code} in (
            {None},
            {"unknown_agent"},
        )
        if opened.error is None:
            reached.add(other)
            channel = opened.data["channel"]
            await board.line(other).ask("message:subscribe", {"channels": [channel]})
            said = await one.ask("message:publish", {"channel": channel, "data": 1})
            assert said["delivered"] == 1
    tree = {name for name in FAMILY if caller == "operator" or name[0] == caller[0]}
    assert reached == {*tree, "operator"}


async def test_a_later_agent_with_the_same_name_and_key_does_not_take_part(
    board: AgentDesk,
) -> None:
    channel = await open_one(board.line("lead"), "tim")
    fleet = board.desk.authority.fleet
    tim = fleet.get("tim")
    assert tim is not None
    fleet.remove(["tim"])
    fleet.add(tim)
    assert await board.line("tim").refused("message:subscribe", {"channels": [channel]}) == (
        "not_found"
    )


async def test_a_later_agent_of_the_same_name_does_not_take_part(board: AgentDesk) -> None:
    channel = await open_one(board.line("lead"), "tim")
    fleet = board.desk.authority.fleet
    fleet.remove(["tim"])
    spec = AgentSpec(profile="communicator")
    fleet.add(Agent(id="tim", parent="eve", public_key="another key", spec=spec))
    tim = board.line("tim")
    assert await tim.refused("message:subscribe", {"channels": [channel]}) == "not_found"
    assert (await tim.ask("conversation:active"))["total"] == 0


async def test_a_creator_keeps_the_conversations_it_opened_last(
    board: AgentDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MAX_BY_CREATOR", 3)
    lead = board.line("lead")
    opened = [await open_one(lead) for _ in range(5)]
    active = (await lead.ask("conversation:active"))["items"]
    assert {item["channel"] for item in active} == set(opened[2:])
    first = {"channel": opened[0], "data": 1}
    assert await lead.refused("message:publish", first) == "not_found"


async def test_when_there_is_no_room_those_without_people_go_first(
    board: AgentDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "MAX_CONVERSATIONS", 2)
    await open_one(board.line("eve"))
    await open_one(board.line("lead"))
    assert await board.line("tim").refused("conversation:create") == "limit_exceeded"
    board.desk.authority.fleet.remove(["eve"])
    await open_one(board.line("tim"))
    assert len(board.delivery.conversations) == 2
