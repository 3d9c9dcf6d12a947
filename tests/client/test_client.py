"""The asynchronous client against a real socket."""

from pathlib import Path

import anyio
import pytest
from tests.faces.zmq.world import until, world

import remit_client
from remit_client import Progress, RemitError


async def test_a_call_returns_the_data_of_the_answer(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        assert await remit.call("test:echo", {"key": "a", "value": [1, None]}) == {
            "key": "a", "value": [1, None],
        }  # fmt: skip
        assert await remit.call("test:echo") is None


async def test_asking_returns_decision_and_revision(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        answer = await remit.ask("test:who")
    assert (answer.data, answer.decision, answer.revision) == ("ann", "d-2", 7)


async def test_allowed_says_yes_and_no(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        assert await remit.allowed("state:get")
        assert not await remit.allowed("agent:spawn")


async def test_a_refusal_is_an_error_with_its_details(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        with pytest.raises(remit_client.Denied) as caught:
            await remit.call("test:denied")
    error = caught.value
    assert (error.code, error.message, error.hint) == ("denied", "you may not", "ask")
    assert (error.details, error.decision) == ({"reason": "not_granted"}, "d-1")
    assert str(error) == "you may not: ask [denied]"


async def test_an_error_in_the_block_comes_out_bare(tmp_path: Path) -> None:
    async with world(tmp_path) as served:
        with pytest.raises(remit_client.Denied):
            async with remit_client.connect(key=served.key()) as remit:
                await remit.call("test:denied")


async def test_a_thousand_calls_at_once_all_get_their_own_answer(tmp_path: Path) -> None:
    answers: dict[int, int] = {}
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:

        async def ask(number: int) -> None:
            answers[number] = await remit.call("test:echo", number)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for number in range(1000):
                    tasks.start_soon(ask, number)
    assert answers == {number: number for number in range(1000)}


async def test_progress_is_reported_while_the_call_waits(tmp_path: Path) -> None:
    seen: list[Progress] = []
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        assert await remit.call("test:steps", on_progress=seen.append) == "done"
    assert [(progress.done, progress.total) for progress in seen] == [(1.0, 2.0), (2.0, 2.0)]


async def test_a_progress_callback_that_fails_fails_its_call_only(tmp_path: Path) -> None:
    def broken(_: Progress) -> None:
        raise KeyError("mine")

    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        with pytest.raises(KeyError):
            await remit.call("test:steps", on_progress=broken)
        assert await remit.call("test:who") == "ann"


async def test_cancelling_the_caller_cancels_the_request(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(remit.call, "test:wait")
            await until(lambda: served.face.stats.jobs == 1)
            tasks.cancel_scope.cancel()
        await until(lambda: served.door.cancelled == ["ann"])
        assert await remit.call("test:who") == "ann"


async def test_a_timeout_raises_and_cancels_the_request(tmp_path: Path) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        with pytest.raises(remit_client.Timeout):
            await remit.call("test:wait", timeout=0.05)
        await until(lambda: served.door.cancelled == ["ann"])


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param("x" * (2 << 20), "too_large", id="more-than-fits"),
        pytest.param(object(), "invalid_data", id="no-form-on-the-wire"),
    ],
)
async def test_what_cannot_be_sent_is_refused_before_it_is_sent(
    tmp_path: Path, data: object, code: str
) -> None:
    async with world(tmp_path) as served, remit_client.connect(key=served.key()) as remit:
        with pytest.raises(RemitError) as caught:
            await remit.call("test:echo", data)
        assert caught.value.code == code
        assert await remit.call("test:who") == "ann"
