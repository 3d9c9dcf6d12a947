"""What a server can do to us that wants to: take memory, take time, tell secrets."""

from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from tests.features.upstreams.client.clients import process, running

from remit.errors import InvalidDataError, ToolFailedError
from remit.features.upstreams.client.state import ClientLimits, SecretMasks, ServerOutput
from remit.features.upstreams.client.transport import MessageFilter

pytestmark = pytest.mark.anyio

SECRET = "swordfish-" + "0123456789" * 6


class Heard:
    """What was logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, _event: str, *, line: str = "", **_more: Any) -> None:
        self.lines.append(line)


async def test_a_list_is_taken_up_to_a_size_and_not_asked_for_beyond_it() -> None:
    limits = ClientLimits(first_pause=0.01, stop_seconds=0.2, list_bytes=1_000_000)
    async with running(process("hostile", "lists-much"), limits=limits) as one:
        listing = await one.client.refresh()
        assert 15 <= len(listing.tools) <= 25
        assert "its list has more than 1,000,000 bytes" in [r.reason for r in listing.reasons]
        assert listing.left_out == len(listing.reasons) - 1
        asked = int((await one.client.call("any", {})).content[0]["text"])
        assert asked <= 2 * 8  # a start and a refresh


async def test_a_tool_that_says_too_much_is_left_out() -> None:
    async with running(process("hostile", "wide-tool")) as one:
        listing = await one.client.refresh()
    assert [tool.name for tool in listing.tools] == ["narrow", "painted"]
    assert "262,144 are taken" in listing.reasons[0].reason


async def test_a_tool_whose_name_has_a_secret_in_it_is_left_out() -> None:
    upstream = process("hostile", "names-its-secret", secret_env={"TOKEN": "NAME"})
    async with running(upstream, secrets={"NAME": SECRET}) as one:
        listing = await one.client.refresh()
    assert [tool.name for tool in listing.tools] == ["plain"]
    assert listing.left_out == 1
    assert SECRET not in repr(listing)


async def test_what_is_no_number_is_neither_trusted_nor_passed_on() -> None:
    told: list[Any] = []
    async with running(process("hostile", "no-numbers")) as one:
        listing = await one.client.refresh()
        assert [left.name for left in listing.reasons] == ["by_default"]
        for name in ("number", "infinite"):
            with pytest.raises(ToolFailedError, match="cannot be written"):
                await one.client.call(name, {})
        nothing = await one.client.call("nothing", {}, progress=lambda *one: told.append(one))
        assert nothing.structured_content == {"n": None}
        assert (await one.client.call("told", {})).content[0]["text"] == "NaN"
    assert told == [(1.0, None, ""), (2.0, 3.0, "")]


async def test_a_change_from_one_to_true_is_a_change() -> None:
    async with running(process("hostile", "changes-a-number")) as one:
        for count in (2, 3):
            await one.text("one")
            with anyio.fail_after(20):
                while len(one.listings) < count:  # noqa: ASYNC110 - told by nobody
                    await anyio.sleep(0.01)
    marks = {listing.tools[0].fingerprint("") for listing in one.listings}
    assert len(marks) == 3


async def test_arguments_that_cannot_be_sent_are_the_callers_mistake_and_harm_nobody() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    async with running(process("hostile", "wide-tool")) as one:
        for argument in (deep, "\ud800"):
            with pytest.raises(InvalidDataError, match="cannot be sent"):
                await one.client.call("narrow", {"a": argument})
        assert await one.text("narrow") == "done"
        assert one.client.health.restarts == 0


@pytest.mark.parametrize("step", [7, 997, 4_096, 65_536])
async def test_no_part_of_a_secret_is_left_where_a_line_is_cut(step: int) -> None:
    log = Heard()
    chatter = ServerOutput(log, SecretMasks([SECRET]), stream="stderr")
    line = (SECRET * 1_000).encode() + b"!!!"
    for at in range(0, len(line), step):
        chatter.hear(line[at : at + step])
    chatter.hear(b"\n")
    chatter.say(line)
    assert len(log.lines) == 2
    assert not set(SECRET) & set("".join(log.lines))


async def test_a_line_that_is_not_cut_is_told_whole() -> None:
    log = Heard()
    chatter = ServerOutput(log, SecretMasks([SECRET]), stream="stderr")
    chatter.hear(b"a long way\nand then")
    chatter.hear(f" {SECRET} it is told".encode())
    chatter.rest()
    assert log.lines == ["a long way", "and then *** it is told"]


class Large:
    """A stream of large answers that nobody asked for."""

    last_size = 4_000_000
    read = 0

    async def receive(self) -> SessionMessage:
        self.read += 1
        return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> "tuple[Large, Large]":
        return self, self

    async def __aexit__(self, *_: object) -> None:
        pass


async def test_what_nobody_asked_for_is_read_the_slower_the_larger_it_is() -> None:
    inner = Large()
    sieve = MessageFilter(inner, on_changed=lambda: None, on_end=lambda: None)  # type: ignore[arg-type]
    async with sieve as (reader, _):
        with anyio.move_on_after(0.5):
            await reader.receive()
    assert inner.read == 1
