"""The one door: what is decided before what, and for whom."""

import threading
from typing import Any

import anyio
import msgspec
import pytest
from tests.fakes import Desk, built_in_handlers, texts

from remit.errors import RemitError
from remit.kernel.dispatch.call import Call, Format
from remit.kernel.dispatch.context import MAX_DEPTH, Context
from remit.kernel.dispatch.registry import Registry
from remit_client.wire import Answer, Progress, Request

CATALOGUE = """\
  outer: {description: Calls on}
  inner: {description: Is called}
  closed: {description: Under review, security_review_required: true}
"""
PROFILES = {
    "both": "capabilities: {outer: true, inner: true}\n",
    "half": "capabilities: {outer: true}\n",
    "waiting": "capabilities: {closed: true}\n",
    "denied": "capabilities: {outer: true, inner: true}\ndisallowed_tools: ['inner:*']\n",
}


class Trap(msgspec.Struct):
    """Data that remember whether anybody decoded them."""

    sprung: str = ""

    def __post_init__(self) -> None:
        DECODED.append(self.sprung)


DECODED: list[str] = []


@pytest.fixture
def desk() -> Desk:
    registry = Registry()

    @registry.event_handler("outer:pass_on", capability="outer")
    async def pass_on(ctx: Context, event: str, data: dict[str, Any] | None = None) -> Any:
        """Call another event for the caller."""
        return await ctx.call(event, data)

    @registry.event_handler("outer:who", capability="outer")
    async def outer_who(ctx: Context) -> dict[str, Any]:
        """Name the caller that the inner event sees."""
        return {"outer": ctx.principal.id, "inner": await ctx.call("inner:who")}

    @registry.event_handler("outer:again", capability="outer")
    async def again(ctx: Context) -> Any:
        """Call itself."""
        return await ctx.call("outer:again")

    @registry.event_handler("inner:who", capability="inner", aliases=["old:who"])
    async def who(ctx: Context) -> str:
        """Name the caller."""
        return ctx.principal.id

    @registry.event_handler("inner:trap", capability="inner")
    async def trap(data: Trap) -> str:
        """Take data that remember."""
        return data.sprung

    @registry.event_handler("closed:door", capability="closed")
    async def door() -> None:
        """Wait for a review."""

    @registry.event_handler("outer:report", capability="outer")
    def report(ctx: Context) -> None:
        """Report from a worker thread."""
        ctx.report(1, 2, "half")

    DECODED.clear()
    return Desk(registry.handlers(), texts(CATALOGUE, **PROFILES))


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("object", {"sprung": "it"}),
        ("msgpack", msgspec.Raw(msgspec.msgpack.encode({"sprung": "it"}))),
        ("json", msgspec.Raw(b'{"sprung": "it"}')),
    ],
)
async def test_the_data_of_a_denied_request_are_never_decoded(
    desk: Desk, form: Format, data: Any
) -> None:
    async def submit(profile: str) -> Answer:
        request = Request(1, "inner:trap", data)
        outcome = desk.dispatcher.submit(Call(desk.principal(profile), request, form))
        return outcome if isinstance(outcome, Answer) else await outcome.run()

    refused = await submit("half")
    assert refused.error is not None
    assert (refused.error.code, DECODED) == ("denied", [])
    allowed = await submit("both")
    assert (allowed.data, DECODED) == ("it", ["it"])


async def test_not_even_data_that_cannot_be_read_change_a_denial(desk: Desk) -> None:
    request = Request(1, "inner:trap", msgspec.Raw(b"\xc1 not msgpack"))
    for profile, code in (("half", "denied"), ("both", "invalid_data")):
        call = Call(desk.principal(profile), request, "msgpack")
        outcome = desk.dispatcher.submit(call)
        answer = outcome if isinstance(outcome, Answer) else await outcome.run()
        assert answer.error is not None
        assert answer.error.code == code


async def test_a_handler_calls_on_as_its_caller_and_under_its_grant(desk: Desk) -> None:
    assert await desk.ask("both", "outer:who") == {"outer": "ann", "inner": "ann"}
    refused = await desk.answer("half", "outer:who")
    assert refused.error is not None
    assert (refused.error.code, refused.error.details["reason"]) == ("denied", "no_grant")
    refused = await desk.answer("denied", "outer:pass_on", {"event": "inner:who"})
    assert refused.error is not None
    assert refused.error.details["reason"] == "explicit_deny"


async def test_each_hop_is_checked_however_many_there_are(desk: Desk) -> None:
    data: dict[str, Any] = {"event": "inner:who"}
    for _ in range(5):
        data = {"event": "outer:pass_on", "data": data}
    assert await desk.ask("both", "outer:pass_on", data) == "ann"
    refused = await desk.answer("half", "outer:pass_on", data)
    assert refused.error is not None
    assert refused.error.details == {"reason": "no_grant", "event": "inner:who"}


async def test_a_handler_that_calls_itself_is_stopped(desk: Desk) -> None:
    with anyio.fail_after(10):
        answer = await desk.answer("both", "outer:again")
    assert answer.error is not None
    assert answer.error.code == "limit_exceeded"
    assert desk.counters.by_event["outer:again"] == MAX_DEPTH + 1


@pytest.mark.parametrize(
    ("profile", "event", "reason"),
    [
        ("half", "inner:who", "no_grant"),
        ("half", "inner:nothing", "no_grant"),
        ("half", "", "no_grant"),
        ("half", "*", "no_grant"),
        ("denied", "inner:who", "explicit_deny"),
        ("denied", "inner:nothing", "explicit_deny"),
        ("waiting", "closed:door", "review_pending"),
        ("vanished", "outer:who", "no_grant"),
    ],
)
async def test_a_denial_says_its_reason(desk: Desk, profile: str, event: str, reason: str) -> None:
    answer = await desk.answer(profile, event)
    assert answer.error is not None
    assert (answer.error.code, answer.error.details["reason"]) == ("denied", reason)
    assert answer.decision
    assert answer.revision == 1


@pytest.mark.parametrize("profile", ["half", "denied"])
async def test_an_old_name_does_not_betray_a_hidden_event(desk: Desk, profile: str) -> None:
    old = await desk.answer(profile, "old:who")
    none = await desk.answer(profile, "old:why")
    assert old.error is not None
    assert none.error is not None
    assert "inner" not in repr(old.error)
    assert repr(old.error).replace("old:who", "old:why") == repr(none.error)


async def test_the_operator_is_told_that_an_event_does_not_exist(desk: Desk) -> None:
    answer = await desk.answer("operator", "inner:whom")
    assert answer.error is not None
    assert (answer.error.code, answer.error.hint) == (
        "unknown_event",
        "did you mean 'inner:who'?",
    )


async def test_a_report_from_a_worker_thread_is_sent_by_the_loop(desk: Desk) -> None:
    # A socket belongs to one thread: whoever reports from another must go through the loop.
    seen: list[tuple[Progress, threading.Thread]] = []
    call = Call(
        desk.principal("both"),
        Request(7, "outer:report", None),  # type: ignore[arg-type]
        progress=lambda progress: seen.append((progress, threading.current_thread())),
    )
    outcome = desk.dispatcher.submit(call)
    assert not isinstance(outcome, Answer)
    assert (await outcome.run()).ok
    assert seen == [(Progress(7, 1, 2, "half"), threading.main_thread())]


async def test_every_request_is_counted_once(desk: Desk) -> None:
    await desk.answer("both", "inner:who")
    await desk.answer("half", "inner:who")
    await desk.answer("both", "inner:trap", {"sprung": 1})
    counted = desk.counters
    assert (counted.requests, counted.denied, counted.failed) == (3, 1, 1)
    assert counted.by_event == {"inner:who": 1, "inner:trap": 1}


async def test_asking_in_process_raises_what_the_event_answered(desk: Desk) -> None:
    with pytest.raises(RemitError) as caught:
        await desk.dispatcher.ask(desk.principal("half"), "inner:who")
    assert caught.value.code == "denied"


def test_every_built_in_event_says_what_it_does_and_which_capability_holds_it() -> None:
    for name, handler in built_in_handlers().items():
        assert handler.spec.summary.endswith("."), name
        assert handler.spec.capability, name
        assert handler.input_schema["type"] == "object", name
        fields = handler.input_schema.get("properties", {})
        assert all(field.get("description") for field in fields.values()), name
