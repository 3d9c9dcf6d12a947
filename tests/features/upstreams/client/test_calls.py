"""What a call of an upstream tool gives, when the server does as it should and when it does not."""

import json

import anyio
import pytest
from tests.features.upstreams.client.clients import faulty, running

from remit.errors import (
    ConflictError,
    LimitError,
    RemitError,
    TooLargeError,
    ToolFailedError,
    UnavailableError,
)
from remit.features.upstreams.client.state import ClientLimits

pytestmark = pytest.mark.anyio


async def test_progress_and_structure_pass_through() -> None:
    heard: list[tuple[float, float | None, str]] = []
    async with running(faulty("reports")) as one:
        outcome = await one.client.call("work", {}, progress=lambda *told: heard.append(told))
    assert heard == [(1.0, 2.0, "step "), (2.0, 2.0, "step ")]
    assert outcome.content == [{"type": "text", "text": "the token is "}]
    assert outcome.structured_content == {"": [""]}
    assert not outcome.is_error


async def test_a_tool_that_says_it_failed_is_an_answer() -> None:
    async with running(faulty("breaks-promises")) as one:
        outcome = await one.client.call("failed", {})
        assert (await one.client.call("kept", {})).structured_content == {"n": 1}
    assert outcome.is_error
    assert outcome.content[0]["text"] == "no such city"
    assert one.client.health.failures == 0


@pytest.mark.parametrize("tool", ["broken", "missing"])
async def test_an_answer_against_the_tools_own_schema_is_not_passed_on(tool: str) -> None:
    async with running(faulty("breaks-promises")) as one:
        with pytest.raises(ToolFailedError, match="does not fit its own output schema") as caught:
            await one.client.call(tool, {})
        assert caught.value.details["reason"] == "output_schema"
        assert (await one.client.call("kept", {})).structured_content == {"n": 1}


@pytest.mark.parametrize("tool", ["no_result", "odd_block", "huge_number"])
async def test_an_answer_that_is_none_fails_that_call_alone(tool: str) -> None:
    async with running(faulty("breaks-promises")) as one:
        with pytest.raises(ToolFailedError):
            await one.client.call(tool, {})
        assert (await one.client.call("kept", {})).structured_content == {"n": 1}
    assert one.client.health.restarts == 0


@pytest.mark.parametrize("tool", ["first", "last"])
async def test_a_result_of_10_mb_is_refused_and_the_connection_goes_on(tool: str) -> None:
    async with running(faulty("large-result")) as one:
        with pytest.raises(TooLargeError, match="10,000,") as caught:
            await one.text(tool)
        assert caught.value.details["reason"] == "too_large"
        assert await one.text("small") == "small"
        assert one.client.health.restarts == 0


async def test_a_line_of_50_mb_costs_nothing_but_time() -> None:
    async with running(faulty("long-line")) as one:
        assert await one.text("shout") == "after"
    assert one.client.health.restarts == 0


async def test_log_lines_between_messages_are_survived() -> None:
    async with running(faulty("chats")) as one:
        assert await one.text("hear") == "heard"
    assert one.client.health.restarts == 0


async def test_a_call_that_is_never_answered_ends_in_time_and_is_cancelled_there() -> None:
    async with running(faulty("never-answers", timeout=0.2)) as one:
        await one.client.refresh()
        with anyio.fail_after(5), pytest.raises(RemitError, match=r"within 0\.2 s") as caught:
            await one.client.call("stuck", {})
        assert caught.value.code == "timeout"
        assert len(json.loads(await one.text("cancelled"))) == 1
        assert one.client.health.failures == 1
        assert one.client.health.restarts == 0


async def test_a_server_that_answers_nothing_any_more_is_started_again() -> None:
    async with running(faulty("freezes", timeout=0.3, start_timeout=3)) as one:
        with pytest.raises(RemitError) as caught:
            await one.client.call("freeze", {})
        assert caught.value.code == "timeout"
        await one.until(lambda health: health.restarts > 0)
        assert "does not answer any more" in one.client.health.last_error
        await one.turned("ready")


async def test_who_gives_up_cancels_the_call_and_frees_its_slot() -> None:
    async with running(faulty("never-answers", concurrency=1)) as one:
        await one.client.refresh()
        with anyio.move_on_after(0.2):
            await one.client.call("stuck", {})
        assert len(json.loads(await one.text("cancelled"))) == 1


async def test_a_call_that_the_server_dies_in_is_told_why_and_the_next_restarts_it() -> None:
    async with running(faulty("dies")) as one:
        before = await one.text("pid")
        with anyio.fail_after(10), pytest.raises(UnavailableError) as caught:
            await one.client.call("die", {})
        assert caught.value.details["reason"] == "it exited with code 3: about to die:"
        after = await one.text("pid")
        assert before != after
        assert one.client.health.restarts == 1
        assert one.client.health.failures == 1


async def test_a_call_that_waits_for_its_turn_outlives_the_server() -> None:
    async with running(faulty("dies", concurrency=1)) as one:
        before = await one.text("pid")
        async with anyio.create_task_group() as calls:

            async def die() -> None:
                with pytest.raises(UnavailableError):
                    await one.client.call("die", {})

            calls.start_soon(die)
            await anyio.lowlevel.checkpoint()
            assert await one.text("pid") != before


async def test_a_call_is_sent_only_when_the_list_was_taken_and_its_check_agrees() -> None:
    async with running(faulty("dies")) as one:
        taken: list[bool] = []

        async def take(_: object) -> None:
            await anyio.sleep(0.1)  # others may run meanwhile
            taken.append(True)

        def check() -> None:
            assert taken
            raise ConflictError("it is another tool now")

        one.client._supervisor._on_listed = take
        with pytest.raises(ConflictError):
            await one.client.call("die", {}, check=check)
        assert one.client.health.restarts == 0


async def test_a_tool_that_was_renamed_is_refused_and_the_list_follows() -> None:
    async with running(faulty("renames")) as one:
        await one.client.refresh()
        with pytest.raises(ToolFailedError, match="Unknown tool: old_name"):
            await one.client.call("old_name", {})
        await one.listed(lambda listing: [tool.name for tool in listing.tools] == ["new_name"])
        assert await one.text("new_name") == "here"


async def test_what_a_server_asks_for_is_refused_politely() -> None:
    async with running(faulty("asks-back")) as one:
        answers = json.loads(await one.text("ask"))
    assert answers == {
        "sampling/createMessage": "Sampling not supported",
        "elicitation/create": "Elicitation not supported",
        "roots/list": "List roots not supported",
        "made/up": "Method not found",
        "ping": "answered",
    }


async def test_no_more_calls_run_or_wait_than_is_allowed() -> None:
    limits = ClientLimits(waiting=1)
    async with running(faulty("slow", concurrency=2), limits=limits) as one:
        await one.client.refresh()
        async with anyio.create_task_group() as calls:
            for _ in range(3):
                calls.start_soon(one.text, "wait")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(LimitError) as caught:
                await one.text("wait")
            assert caught.value.details["retry_after"] > 0
            calls.cancel_scope.cancel()


async def test_a_server_that_reads_nothing_holds_nobody_up() -> None:
    async with running(faulty("deaf", timeout=0.3, start_timeout=3)) as one:
        with anyio.fail_after(10), pytest.raises(RemitError) as caught:
            await one.client.call("one", {"data": "x" * 1_000_000})
        assert caught.value.code == "timeout"


async def test_what_a_server_does_not_read_is_not_kept_for_ever() -> None:
    reasons: list[str] = []
    async with running(faulty("deaf", start="eager", concurrency=40)) as one:
        await one.turned("ready")

        async def call() -> None:
            with pytest.raises(UnavailableError) as caught:
                await one.client.call("one", {"data": "x" * 1_000_000})
            reasons.append(caught.value.details["reason"])

        with anyio.fail_after(20):
            async with anyio.create_task_group() as calls:
                for _ in range(25):
                    calls.start_soon(call)
    assert len(reasons) == 25
    assert "it does not read what is sent to it" in reasons
