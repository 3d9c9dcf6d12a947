"""What reaches those whom a session binds."""

from typing import Any

import pytest
from tests.features.messages.circle import Circle, circle_files
from tests.listeners import FakePost, Listener

from remit.model.names import EventPattern


@pytest.fixture
async def circle() -> Circle:
    made = Circle()
    await made.client("boss", "boss")
    await made.open("boss", "s")
    await made.spawn("boss", "kid", "writer", session="s")
    return made


def listen(circle: Circle, *names: str) -> list[Listener]:
    listeners = [Listener(name) for name in names]
    delivery = circle.kernel.delivery
    delivery.post = FakePost(*listeners)
    for one in listeners:
        delivery.bus.subscribe(one, patterns=[EventPattern.parse("state:*")])
    return listeners


def heard(listener: Listener) -> list[Any]:
    return [data for event, data in listener.events if event == "state:set"]


async def test_a_bound_agent_hears_no_more_of_what_its_session_took(circle: Circle) -> None:
    boss, kid = listen(circle, "boss", "kid")
    publish = circle.kernel.delivery.publish
    assert publish("state:set", 1, "boss") == 2
    await circle.narrow("boss", "s", disallowed_tools=["state:set"])
    assert publish("state:set", 2, "boss") == 1
    assert (heard(boss), heard(kid)) == ([1, 2], [1])


async def test_a_bound_agent_is_told_what_it_lost(circle: Circle) -> None:
    (kid,) = listen(circle, "kid")
    await circle.narrow("boss", "s", disallowed_tools=["state:set"], limits={"max_children": 1})
    told = [data for event, data in kid.events if event == "permission:changed"]
    assert [(one["lost"], one["gained"]) for one in told] == [(("state:set",), ())]
    assert list(told[0]["limits_changed"]) == ["max_children"]


async def test_what_a_request_names_does_not_reach_what_is_pushed(circle: Circle) -> None:
    """Nothing pushed belongs to a request; only what binds an agent counts."""
    (boss,) = listen(circle, "boss")
    await circle.narrow("boss", "s", disallowed_tools=["state:set"])
    circle.kernel.delivery.publish("state:set", 1, "boss")
    assert heard(boss) == [1]


async def test_a_reload_tells_a_bound_agent_only_what_its_session_leaves(circle: Circle) -> None:
    await circle.narrow("boss", "s", disallowed_tools=["state:set"])
    (kid,) = listen(circle, "kid")
    circle.files = circle_files(writer="capabilities: [read, web]\n")
    planned = await circle.ask("operator", "config:plan")
    assert planned["summary"]["agents"] == 1
    await circle.ask("operator", "config:reload")
    told = [data for event, data in kid.events if event == "permission:changed"]
    assert [(one["lost"], one["gained"]) for one in told] == [
        (("state:delete",), ("system:stats",))
    ]
