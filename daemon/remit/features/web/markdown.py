"""HTML turned into Markdown or plain text, in a process of its own with an end to its patience.

A thread would not do: the converter keeps the interpreter to itself for as long as it works, a
hostile page of 4.5 MB makes it ask for more memory than there is, and then it ends its process.
"""

import subprocess
import sys
from pathlib import Path
from typing import Literal

import anyio
from anyio.abc import Process

Wanted = Literal["markdown", "text"]

SECONDS = 8.0
_AT_ONCE = anyio.CapacityLimiter(2)
_PROGRAM = Path(__file__).with_name("converter.py")


class UnreadablePageError(Exception):
    """A page that could not be converted; the text says why."""


async def convert_page(html: str, wanted: Wanted, *, limit: int, base_url: str = "") -> str:
    """Convert a page.

    Args:
        html: the page.
        wanted: what to make of it.
        limit: bytes of the result at the most.
        base_url: what relative links start at.

    Raises:
        UnreadablePageError: it took too long or too much memory.
    """
    async with _AT_ONCE:
        process = await _start(wanted, limit, base_url)
        async with process:
            try:
                with anyio.fail_after(SECONDS):
                    data = await _talk(process, html.encode("utf-8", "replace"), limit)
                    code = await process.wait()
            except TimeoutError as error:
                raise UnreadablePageError(f"it took more than {SECONDS:g} s") from error
            finally:
                if process.returncode is None:
                    process.kill()
    if code:
        raise UnreadablePageError("it took more than there is room for")
    return data.decode("utf-8", "ignore")  # the last sign may be cut in half


async def _start(wanted: Wanted, limit: int, base_url: str) -> Process:
    try:
        # A start that is given up half-way would leave a process behind that nobody knows of.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [sys.executable, "-I", str(_PROGRAM), wanted, str(limit), base_url],
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},  # nothing of the daemon's
                start_new_session=True,  # a signal to the daemon's group is not for it
            )
    except OSError as error:
        raise UnreadablePageError("no process could be started for it") from error
    return process


async def _talk(process: Process, data: bytes, limit: int) -> bytes:
    """Hand a page in while taking out what becomes of it."""
    found = bytearray()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_hand_in, process, data)
        if process.stdout is not None:
            async for chunk in process.stdout:
                found += chunk[: limit - len(found)]
    return bytes(found)


async def _hand_in(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    try:
        await process.stdin.send(data)
        await process.stdin.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        return  # it ended before it had read all; its exit code says so
