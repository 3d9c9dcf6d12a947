"""Messages between agents: delivered at once, or kept and delivered once on return."""

from typing import Any

import anyio
import pytest
from tests.family import Family

from remit.features.messages.mailbox import DIRECT_EVENT, MAX_WAITING, MESSAGE_BYTES, Mailbox
from remit.model.event import Notice


class Wire:
    """A face whose agents have as many connections as a test says."""

    def __init__(self) -> None:
        self.connected: dict[str, int] = {}
        self.told: list[tuple[str, Notice]] = []

    def deliver(self, connection: Any, notice: Notice) -> Any:
        raise NotImplementedError

    def tell(self, name: str, notice: Notice) -> int:
        count = self.connected.get(name, 0)
        self.told += [(name, notice)] * count
        return count

    def messages(self, name: str) -> list[Any]:
        return [n.data["message"] for who, n in self.told if who == name]


class Post(Family):
    def __init__(self) -> None:
        super().__init__()
        self.wire = Wire()
        self.kernel.delivery.post = self.wire

    async def send(self, who: str, to: str, message: Any) -> Any:
        return await self.ask(who, "agent:send_message", {"agent_id": to, "message": message})


@pytest.fixture
async def post() -> Post:
    made = Post()
    await made.spawn("operator", "boss", "boss")
    await made.spawn("boss", "one", "helper")
    await made.spawn("boss", "two", "helper")
    return made


async def test_siblings_talk_to_each_other_and_the_sender_is_who_it_is(post: Post) -> None:
    post.wire.connected["two"] = 2
    assert await post.send("one", "two", {"hi": 1}) == {"delivered": 2, "kept": False}
    who, notice = post.wire.told[0]
    assert (who, notice.event, notice.origin) == ("two", DIRECT_EVENT, "one")
    assert notice.data == {"from": "one", "message": {"hi": 1}}


async def test_a_message_to_one_that_is_away_is_kept_and_handed_over_once(post: Post) -> None:
    for at in range(3):
        assert await post.send("one", "two", at) == {"delivered": 0, "kept": True}
    post.wire.connected["two"] = 1
    assert await post.kernel.service(Mailbox).deliver_waiting("two") == 3
    assert await post.kernel.service(Mailbox).deliver_waiting("two") == 0
    assert post.wire.messages("two") == [0, 1, 2]


async def test_arriving_is_enough_to_get_what_waits(post: Post) -> None:
    await post.send("one", "two", "late")
    async with post.kernel.service(Mailbox).delivering():
        post.wire.connected["two"] = 1
        post.kernel.service(Mailbox).arrived("two")
        with anyio.fail_after(5):
            while not post.wire.told:
                await anyio.lowlevel.checkpoint()
    assert post.wire.messages("two") == ["late"]
    assert post.kernel.service(Mailbox).connections("two") == 1
    post.kernel.service(Mailbox).gone("two")
    assert post.kernel.service(Mailbox).connections("two") == 0


async def test_one_that_leaves_again_before_the_handing_over_keeps_its_mail(post: Post) -> None:
    await post.send("one", "two", "x")
    assert await post.kernel.service(Mailbox).deliver_waiting("two") == 0
    assert await post.store.mail_count("two") == 1


async def test_other_trees_and_those_who_do_not_exist_are_unknown_alike(post: Post) -> None:
    await post.spawn("operator", "stranger", "boss")
    for name in ("stranger", "nobody"):
        data = {"agent_id": name, "message": 1}
        assert (await post.refused("one", "agent:send_message", data))[0] == "unknown_agent"
    await post.send("operator", "stranger", 1)
    await post.send("one", "operator", 1)


async def test_one_that_may_not_receive_gets_nothing_and_the_sender_is_told(post: Post) -> None:
    await post.spawn("boss", "mute", "mute")
    data = {"agent_id": "mute", "message": 1}
    assert (await post.refused("one", "agent:send_message", data))[0] == "conflict"
    assert await post.store.mail_count("mute") == 0


async def test_who_lost_the_right_meanwhile_is_handed_nothing(post: Post) -> None:
    await post.send("one", "two", "secret")
    await post.ask("boss", "agent:update", {"agent_id": "two", "capabilities": {"talk": False}})
    post.wire.connected["two"] = 1
    assert await post.kernel.service(Mailbox).deliver_waiting("two") == 0
    assert post.wire.messages("two") == []


async def test_a_queue_is_bounded_and_an_agents_own_limit_is_smaller(post: Post) -> None:
    for at in range(MAX_WAITING):
        await post.send("one", "two", at)
    code, details = await post.refused(
        "one", "agent:send_message", {"agent_id": "two", "message": 0}
    )
    assert (code, details["limit"]) == ("limit_exceeded", MAX_WAITING)
    await post.spawn("boss", "small", "helper", limits={"max_queue": 1})
    await post.send("one", "small", 1)
    data = {"agent_id": "small", "message": 2}
    assert (await post.refused("one", "agent:send_message", data))[0] == "limit_exceeded"


async def test_a_message_that_is_too_large_is_refused(post: Post) -> None:
    data = {"agent_id": "two", "message": "x" * MESSAGE_BYTES}
    assert (await post.refused("one", "agent:send_message", data))[0] == "too_large"


async def test_a_later_agent_of_the_same_name_does_not_get_the_mail(post: Post) -> None:
    await post.send("one", "two", "secret")
    await post.ask("boss", "agent:terminate", {"agent_id": "two"})
    await post.spawn("boss", "two", "helper")
    post.wire.connected["two"] = 1
    assert await post.kernel.service(Mailbox).deliver_waiting("two") == 0
