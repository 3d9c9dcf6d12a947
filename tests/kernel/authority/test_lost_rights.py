"""A right that is lost between the decision and the beginning of a call."""

import threading
from typing import Any

import anyio
import msgspec
import pytest
from tests.fakes import Desk, texts

from remit.kernel.dispatch.call import Call
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import Registry
from remit_client.wire import Answer, Request

CATALOGUE = "  lab: {description: Experiments}\n"
PROFILES = {"holder": "capabilities: {lab: true}\n", "nobody": ""}
KINDS = ["lab:read", "lab:change", "lab:plain", "lab:inline"]

RAN: list[str] = []
GATE = threading.Event()


@pytest.fixture
def desk() -> Desk:
    registry = Registry()

    @registry.event_handler("lab:read", capability="lab", effect="read")
    async def read() -> None:
        """Nothing is written before it runs."""
        RAN.append("read")

    @registry.event_handler("lab:change", capability="lab")
    async def change() -> None:
        """It is written down first."""
        RAN.append("change")

    @registry.event_handler("lab:plain", capability="lab")
    def plain() -> None:
        """It runs in a thread."""
        RAN.append("plain")

    @registry.event_handler("lab:inline", capability="lab", inline=True)
    def inline(ctx: Context) -> None:
        """It runs on the loop, but is written down first."""
        RAN.append("inline")

    @registry.event_handler("lab:block", capability="lab")
    def block() -> None:
        """Keep a thread busy."""
        RAN.append("block")
        GATE.wait(20)

    RAN.clear()
    GATE.clear()
    return Desk(registry.handlers(), texts(CATALOGUE, **PROFILES))


def submitted(desk: Desk, event: str) -> Any:
    request = Request(1, event, msgspec.Raw(msgspec.msgpack.encode({})))
    outcome = desk.dispatcher.submit(Call(desk.principal("holder"), request, "msgpack"))
    assert not isinstance(outcome, Answer)
    return outcome


@pytest.mark.parametrize("event", KINDS)
async def test_a_call_does_not_begin_once_its_caller_was_ended(desk: Desk, event: str) -> None:
    call = submitted(desk, event)
    desk.authority.fleet.remove(["ann"])
    answer = await call.run()
    assert answer.error.code == "denied"
    assert RAN == []


@pytest.mark.parametrize("event", KINDS)
async def test_a_call_does_not_begin_once_its_caller_was_narrowed(desk: Desk, event: str) -> None:
    call = submitted(desk, event)
    desk.principal("nobody")
    answer = await call.run()
    assert (answer.error.code, answer.error.details["reason"]) == ("denied", "no_grant")
    assert RAN == []


@pytest.mark.parametrize("event", KINDS)
async def test_a_call_begins_while_its_caller_keeps_the_right(desk: Desk, event: str) -> None:
    assert (await submitted(desk, event).run()).ok
    assert [event.partition(":")[2]] == RAN


async def test_a_call_that_waited_for_a_thread_begins_only_if_it_still_may(desk: Desk) -> None:
    anyio.to_thread.current_default_thread_limiter().total_tokens = 1
    answers: list[Answer] = []

    async def run(call: Any) -> None:
        answers.append(await call.run())

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, submitted(desk, "lab:block"))
            while not RAN:
                await anyio.lowlevel.checkpoint()
            tasks.start_soon(run, submitted(desk, "lab:plain"))
            while not anyio.to_thread.current_default_thread_limiter().statistics().tasks_waiting:
                await anyio.lowlevel.checkpoint()
            desk.principal("nobody")
            GATE.set()
    assert [answer.error and answer.error.code for answer in answers] == [None, "denied"]
    assert RAN == ["block"]
