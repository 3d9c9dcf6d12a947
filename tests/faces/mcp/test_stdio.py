"""Lines on pipes, sockets and files: whole messages in their order, and nobody grows."""

import os
import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from remit.faces.mcp import stdio
from remit.faces.mcp.stdio import LineReader, LineWriter

PATIENCE = 10.0
SIZES = {"a": 3, "b": 1_000_000, "c": 4_095, "d": 70_000}
Ends = tuple[int, int]


def _pipe() -> Ends:
    return os.pipe()


def _sockets() -> Ends:
    theirs, ours = socket.socketpair()
    return theirs.detach(), ours.detach()


@pytest.fixture(params=[_pipe, _sockets])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """Where is read, and where is written."""
    found: Ends = request.param()
    yield found
    for end in found:
        with suppress(OSError):  # a test may have closed it
            os.close(end)


async def all_lines(descriptor: int) -> list[str]:
    with anyio.fail_after(PATIENCE):
        return [line async for line in LineReader(descriptor)]


async def test_lines_are_whole_however_they_are_cut(ends: Ends) -> None:
    reading, writing = ends
    lines = LineReader(reading)
    with anyio.fail_after(PATIENCE):
        os.write(writing, b'{"a":')
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_later, writing, "1}\nzwölf\n\nla".encode())
            assert [await anext(lines) for _ in range(3)] == ['{"a":1}\n', "zwölf\n", "\n"]
        os.write(writing, b"st")
        os.close(writing)
        assert await anext(lines) == "last"
        with pytest.raises(StopAsyncIteration):
            await anext(lines)


async def _later(writing: int, data: bytes) -> None:
    os.write(writing, data)


async def test_a_file_is_read_like_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "said"
    file.write_bytes(b"one\ntwo\n")
    with file.open("rb") as opened:
        assert await all_lines(opened.fileno()) == ["one\n", "two\n"]


async def test_bytes_that_are_no_text_end_nothing(ends: Ends) -> None:
    reading, writing = ends
    os.write(writing, b"\xff\xfe\ngood\n")
    os.close(writing)
    assert await all_lines(reading) == ["��\n", "good\n"]


async def test_a_line_without_end_is_not_kept_for_ever(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "_LONGEST", 8)
    reading, writing = ends
    os.write(writing, b"0123456789\nshort\n")
    os.close(writing)
    assert await all_lines(reading) == ["0123456789\n", "short\n"]
    reading, writing = os.pipe()
    os.write(writing, b"0123456789")
    os.close(writing)
    assert await all_lines(reading) == ["01234567", "89"]
    os.close(reading)


async def test_waiting_for_a_host_can_be_given_up(ends: Ends) -> None:
    with anyio.move_on_after(0.01) as scope:
        await anext(LineReader(ends[0]))
    assert scope.cancelled_caught


@pytest.mark.parametrize("blocking", [True, False])
async def test_messages_of_any_size_go_out_whole_and_in_order(
    ends: Ends, *, blocking: bool
) -> None:
    reading, writing = ends
    os.set_blocking(writing, blocking)
    sent = [letter * size + "\n" for letter, size in SIZES.items()]
    pipe = LineWriter(writing)

    async def send() -> None:
        for message in sent:
            await pipe.write(message)
            await pipe.flush()
        os.close(writing)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            assert await all_lines(reading) == sent


async def test_a_host_that_does_not_read_makes_us_wait_and_not_the_others(ends: Ends) -> None:
    reading, writing = ends
    pipe = LineWriter(writing)
    written = 0

    async def send() -> None:
        nonlocal written
        while True:
            await pipe.write("x" * 4_000 + "\n")
            written += 1

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            while written == 0 or select.select([], [writing], [], 0)[1]:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    os.read(reading, 1 << 20)  # the thread that waits may go on
    assert written < 1_000
