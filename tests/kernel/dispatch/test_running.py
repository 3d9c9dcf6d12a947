"""Calls under way: who is full, and who is ended."""

import anyio
import pytest

from remit.kernel.dispatch.limits import Running


async def held(running: Running, name: str, ended: list[str], mark: str = "") -> None:
    """A call that goes on until it is ended."""
    with running.held(name, mark=mark) as scope:
        await anyio.sleep_forever()
    ended.append(f"{name} {mark}".strip())
    assert scope.cancelled_caught


async def test_a_caller_is_full_with_as_many_calls_as_it_may_have(running: Running) -> None:
    with running.held("ann"):
        assert not running.is_full("ann")
        with running.held("ann"):
            assert running.is_full("ann")
            assert not running.is_full("bob")
        assert not running.is_full("ann")


async def test_who_is_shut_out_ends_with_all_its_calls_and_nobody_else(running: Running) -> None:
    ended: list[str] = []
    async with anyio.create_task_group() as tasks:
        for name in ("ann", "ann", "bob"):
            tasks.start_soon(held, running, name, ended)
        await anyio.wait_all_tasks_blocked()
        assert running.end("ann") == 2
        await anyio.wait_all_tasks_blocked()
        assert ended == ["ann", "ann"]
        assert not running.is_full("ann")
        assert running.end("ann") == 0
        assert running.end("bob") == 1


async def test_a_token_that_counts_no_longer_ends_what_came_in_by_it(running: Running) -> None:
    ended: list[str] = []
    async with anyio.create_task_group() as tasks:
        for mark in ("one", "two"):
            tasks.start_soon(held, running, "ann", ended, mark)
        await anyio.wait_all_tasks_blocked()
        assert running.end("ann", mark="two") == 1
        await anyio.wait_all_tasks_blocked()
        assert ended == ["ann two"]
        assert running.end("ann", mark="three") == 0
        assert running.end("ann") == 1


async def test_a_call_ends_at_its_deadline_by_itself(running: Running) -> None:
    with anyio.fail_after(5), running.held("ann", deadline=anyio.current_time() - 1) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert running.end("ann") == 0


async def test_a_call_that_fails_gives_its_place_back(running: Running) -> None:
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), running.held("ann"):
            raise ZeroDivisionError
    assert running.end("ann") == 0


@pytest.fixture
def running() -> Running:
    return Running(2)
