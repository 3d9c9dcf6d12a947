"""Limits of agents: calls, concurrency, and their part of the shared state."""

from typing import Any

import anyio
import pytest
from tests.fakes import Desk, built_in_handlers, texts
from tests.family import Family

from remit.kernel.dispatch.call import Call
from remit.kernel.dispatch.dispatcher import WrittenDenial
from remit.kernel.dispatch.runner import RunningCall
from remit.model.limits import Limits
from remit_client.wire import Request


@pytest.fixture
async def family() -> Family:
    made = Family()
    await made.spawn("operator", "boss", "boss")
    return made


async def test_calls_a_minute_are_counted_and_a_refusal_says_when_to_come_back(
    family: Family,
) -> None:
    await family.spawn("boss", "slow", "slow")
    for _ in range(3):
        await family.ask("slow", "state:list")
    code, details = await family.refused("slow", "state:list")
    assert code == "limit_exceeded"
    assert details == {"limit": "max_calls_per_minute", "retry_after": 60.0}
    status = await family.ask("boss", "agent:status", {"agent_id": "slow"})
    assert status["use"]["calls_last_minute"] == 3


async def test_a_childs_limits_are_never_wider_than_its_parents(family: Family) -> None:
    await family.spawn("boss", "lead", "lead")
    child = await family.spawn("lead", "kid", inherit=True, limits={"max_children": 9})
    assert child["limits"]["max_children"] == 2


async def test_a_burst_is_counted_before_the_first_of_it_has_run(family: Family) -> None:
    await family.spawn("boss", "kid", "helper", limits={"max_concurrent": 2})
    nothing: Any = {}
    calls = [
        family.dispatcher.submit(Call(family.principal("kid"), Request(at, "state:list", nothing)))
        for at in range(3)
    ]
    assert [type(call) for call in calls] == [RunningCall, RunningCall, WrittenDenial]
    refused = await calls[2].run()  # type: ignore[union-attr]
    assert refused.error is not None
    assert refused.error.details["limit"] == "max_concurrent"
    assert refused.error.details["retry_after"] > 0
    for call in calls[:2]:
        assert (await call.run()).ok  # type: ignore[union-attr]
    assert (await family.answer("kid", "state:list")).ok
    assert family.kernel.rate_limiter.running("kid") == 0


async def test_a_call_that_is_cancelled_frees_its_place(family: Family) -> None:
    await family.spawn("boss", "kid", "helper", limits={"max_concurrent": 1})
    with anyio.CancelScope() as scope:
        scope.cancel()
        await family.answer("kid", "state:list")
    assert (await family.answer("kid", "state:list")).ok


# ---- state prefixes ----


@pytest.fixture
async def corner(family: Family) -> Family:
    for key in ("shared/x", "team/a/1", "team/a/2", "team/b/1", "zoo"):
        await family.ask("operator", "state:set", {"key": key, "value": key})
    await family.spawn("operator", "corner", "corner")
    return family


@pytest.mark.parametrize("key", ["team/b/1", "zoo", "team/a", "nowhere", "shared"])
@pytest.mark.parametrize("event", ["state:get", "state:set", "state:delete"])
async def test_outside_of_its_prefixes_an_agent_is_denied_whether_or_not_the_key_exists(
    corner: Family, event: str, key: str
) -> None:
    data = {"key": key} | ({"value": 1} if event == "state:set" else {})
    code, details = await corner.refused("corner", event, data)
    assert (code, details["reason"]) == ("denied", "limit")


async def test_inside_of_its_prefixes_it_works(corner: Family) -> None:
    await corner.ask("corner", "state:set", {"key": "team/a/3", "value": 1})
    assert (await corner.ask("corner", "state:get", {"key": "team/a/3"}))["value"] == 1
    assert (await corner.ask("corner", "state:delete", {"key": "team/a/3"}))["deleted"]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_a_list_shows_and_counts_only_what_is_its_own(corner: Family, limit: int) -> None:
    keys: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await corner.ask("corner", "state:list", {"limit": limit, "after": after})
        assert page["total"] == 3
        assert len(page["items"]) <= limit
        keys += [item["key"] for item in page["items"]]
        after = page["next"]
    assert keys == ["shared/x", "team/a/1", "team/a/2"]


@pytest.mark.parametrize(
    ("prefix", "total"), [("team/", 2), ("team/a/1", 1), ("team/b/", 0), ("z", 0), ("t", 2)]
)
async def test_a_prefix_that_is_asked_for_narrows_the_list_further(
    corner: Family, prefix: str, total: int
) -> None:
    page = await corner.ask("corner", "state:list", {"prefix": prefix})
    assert (page["total"], len(page["items"]), page["next"]) == (total, total, None)


async def test_a_child_works_under_the_prefixes_of_both(corner: Family) -> None:
    prefixes = {"state_prefixes": ["team/", "elsewhere/"]}
    child = await corner.spawn("corner", "kid", "writer", limits=prefixes)
    assert child["limits"]["state_prefixes"] == ["team/a/"]
    assert (await corner.refused("kid", "state:get", {"key": "shared/x"}))[0] == "denied"
    assert (await corner.ask("kid", "state:list"))["total"] == 2


async def test_prefixes_that_share_nothing_allow_nothing(corner: Family) -> None:
    prefixes = {"state_prefixes": ["elsewhere/"]}
    await corner.spawn("corner", "kid", "writer", limits=prefixes)
    assert (await corner.ask("kid", "state:list"))["total"] == 0
    assert (await corner.refused("kid", "state:get", {"key": "elsewhere/1"}))[0] == "denied"


def test_prefixes_are_read_from_the_catalogue() -> None:
    files = texts(
        "  a:\n    description: a\n    event_patterns: [state:get]\n"
        "    resource_limits: {state_prefixes: [x/]}\n",
        one="capabilities: [a]\nlimits: {state_prefixes: [x/y/, z/], max_queue: 3}\n",
    )
    desk = Desk(built_in_handlers(), files)
    wanted = Limits(state_prefixes=("x/y/",), max_queue=3)
    assert desk.authority.catalogue.grants["one"].limits == wanted
