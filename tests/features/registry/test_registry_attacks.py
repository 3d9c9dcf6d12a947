"""Those who want to see, change or break what is not theirs, and what is damaged on disk."""

from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fakes import starter_files
from tests.family import Family
from tests.features.registry.equipment import Counts, linked, registry, registry_family, visible

from remit.errors import LimitError, StoreError
from remit.features.registry import service
from remit.features.registry.entry import Declaration
from remit.kernel.store.rows import BlobRows

HIDDEN = "tool:key:revoke"
ABSENT = "tool:kex:revoke"
LOOKING: list[tuple[str, dict[str, Any]]] = [
    ("tool:list", {"capability": "NAME"}),
    ("tool:resolve", {"capability": "NAME"}),
    ("tool:resolve", {"capability": "ID"}),
    ("skill:resolve", {"tools": ["ID"], "tags": ["operations"]}),
    ("link:mission", {"needs": ["NAME", "ID"]}),
    ("registry:search", {"query": "NAME"}),
    ("registry:search", {"query": "ID", "kind": "tool"}),
    ("mission:end", {"mission": "ID"}),
]


@pytest.fixture
async def family() -> Family:
    return await registry_family()


def filled(data: Any, id_: str) -> Any:
    text = msgspec.json.encode(data).decode()
    return msgspec.json.decode(text.replace("NAME", id_.removeprefix("tool:")).replace("ID", id_))


@pytest.mark.parametrize(("event", "data"), LOOKING)
async def test_what_is_out_of_sight_is_answered_like_what_is_not_there(
    family: Family, event: str, data: dict[str, Any]
) -> None:
    said = Declaration(id=HIDDEN, capability="look_up", tags=("operations",))
    await registry(family).declare([said], by="operator")
    await registry(family).mark(HIDDEN, is_healthy=False, by="operator", reason="secret")
    answers = []
    for id_ in (HIDDEN, ABSENT):
        answer = await family.answer("planner", event, filled(data, id_))
        told = msgspec.to_builtins(answer.error) if answer.error else answer.data
        answers.append(repr(told).replace("kex:", "key:"))
    assert answers[0] == answers[1]
    assert "look_up" not in answers[0]


async def test_no_list_shows_more_than_the_grant(family: Family) -> None:
    held = family.authority.grant(family.principal("planner")).events
    listed = await family.ask("planner", "tool:list", {"limit": 1000})
    ids = {one["id"] for one in listed["items"]}
    assert ids
    assert all(id_.removeprefix("tool:") in held or id_ in held for id_ in ids)
    health = await family.ask("planner", "registry:health", {"limit": 1000})
    assert {one["id"] for one in health["items"]} >= ids
    assert sum(health["states"].values()) == health["total"]
    assert "key:revoke" not in repr((listed, health))


async def test_nobody_asks_for_an_agent_that_is_not_below_it(family: Family) -> None:
    for name in ("reader", "nobody"):
        code, _details = await family.refused(
            "planner", "link:mission", {"needs": ["state:get"], "agent": name}
        )
        assert code == "unknown_agent"


async def test_linking_for_an_agent_below_gives_it_its_own_tools(family: Family) -> None:
    await family.spawn("planner", "worker", "observer")
    found = await linked(family, "planner", "state:get", "state:set", agent="worker")
    assert visible(found) == ["tool:state:get"]


async def test_who_may_not_link_is_denied(family: Family) -> None:
    for event in ("link:mission", "tool:list", "registry:health", "mission:end"):
        assert (await family.refused("reader", event, {}))[0] == "denied"


IDS = st.sampled_from(["tool:state:get", "tool:state:set", "tool:state:list", HIDDEN, ABSENT])


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(IDS, st.lists(IDS, max_size=3)))
async def test_no_declaration_makes_a_link_wider_than_the_grant(
    family: Family, needed: dict[str, list[str]]
) -> None:
    said = [Declaration(id=id_, dependencies=tuple(ids)) for id_, ids in needed.items()]
    cleared = [Declaration(id=id_) for id_ in ("tool:state:get", "tool:state:set", HIDDEN)]
    await registry(family).declare([*cleared, Declaration(id="tool:state:list"), *said], by="x")
    found = await linked(family, "planner", "state:get", "state:set", "state:list", bind=True)
    order = found["tools"]["order"]
    assert HIDDEN not in repr(found)
    assert ABSENT not in repr(found)
    for at, id_ in enumerate(order):
        assert set(needed.get(id_, ())) <= set(order[:at])
    (session,) = [one for one in family.authority.fleet.sessions.of("planner") if one.is_open]
    assert session.steps[0].allowed_tools == tuple(sorted(id_[5:] for id_ in order))
    await family.ask("planner", "mission:end", {"mission": found["mission"]})


async def test_two_who_declare_at_once_both_count(family: Family) -> None:
    async def declare(id_: str) -> None:
        await family.ask("operator", "tool:register", {"id": id_, "version": "2"})

    ids = ["tool:state:get", "tool:state:set", "tool:state:list"]
    async with anyio.create_task_group() as tasks:
        for id_ in ids:
            tasks.start_soon(declare, id_)
    later = Family(starter_files(), store=family.store)
    await registry(later).load()
    assert set(registry(later).declarations) == set(ids)


async def test_what_could_not_be_written_was_not_declared(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(BlobRows, "blob_put", full)
        asked = {"id": "tool:state:get", "capability": "look_up"}
        assert (await family.refused("operator", "tool:register", asked))[0] == "store_unavailable"
    assert registry(family).declarations == {}
    listed = await family.ask("operator", "tool:list", {"capability": "look_up"})
    assert listed["items"] == []


async def test_there_is_an_end_to_declarations(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_DECLARATIONS", 2)
    many = [Declaration(id=f"tool:{at}") for at in range(3)]
    with pytest.raises(LimitError):
        await registry(family).declare(many, by="operator")
    assert registry(family).declarations == {}


async def test_a_damaged_registry_is_set_aside_and_the_daemon_goes_on(family: Family) -> None:
    rows = BlobRows(family.store.database)
    await rows.blob_put("registry", b"{no JSON")
    await registry(family).load()
    assert registry(family).declarations == {}
    await family.ask("operator", "tool:register", {"id": "tool:state:get", "version": "2"})
    assert await rows.blob_get("registry-unreadable") == b"{no JSON"


async def test_health_that_calls_changed_is_kept_when_the_daemon_ends(family: Family) -> None:
    counts = registry(family).trials = Counts()
    counts.latest["tool:state:get"] = [False] * 6
    registry(family).calls_counted(["tool:state:get"])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(registry(family).keep)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    later = Family(starter_files(), store=family.store)
    await registry(later).load()
    health = await later.ask("operator", "registry:health", {"state": "flaky"})
    assert [one["id"] for one in health["items"]] == ["tool:state:get"]


async def test_calls_before_a_repair_do_not_count_against_it(family: Family) -> None:
    counts = registry(family).trials = Counts()
    one = "tool:state:get"
    counts.latest[one] = [False] * 6
    registry(family).calls_counted([one])
    await family.ask("operator", "registry:mark", {"id": one, "healthy": True})
    counts.latest[one] += [True]
    registry(family).calls_counted([one])
    assert (await family.ask("operator", "registry:health", {"state": "green"}))["total"] == 1
    counts.latest[one] += [False] * 3
    registry(family).calls_counted([one])
    assert (await family.ask("operator", "registry:health", {"state": "red"}))["total"] == 1
