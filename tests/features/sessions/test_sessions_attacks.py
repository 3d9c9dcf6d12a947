"""Ways out of a session that are none."""

import anyio
import anyio.lowlevel
import pytest
from tests.features.messages.circle import Circle, circle_files
from tests.stores import TemporaryStore

from remit.errors import StoreError
from remit.kernel.store.records import SessionRecord

WIDER = "capabilities: [read, write, talk, web, spawn]\n"


@pytest.fixture
async def circle() -> Circle:
    """The boss, a lead that is bound to the boss's session, and a stranger."""
    made = Circle()
    await made.client("boss", "boss")
    await made.client("stranger", "boss")
    await made.open("boss", "s", disallowed_tools=["state:set"])
    await made.spawn("boss", "lead", "lead", session="s")
    return made


async def test_a_stranger_neither_works_in_nor_learns_of_the_sessions_of_others(
    circle: Circle,
) -> None:
    assert circle.holds("stranger", "s") == circle.holds("stranger")
    for event in ("session:narrow", "session:close"):
        for data in ({"session": "s"}, {"session": "s", "owner": "boss"}):
            error = await circle.error("stranger", None, event, data)
            missing = await circle.error("stranger", None, event, data | {"session": "no"})
            assert error.code == missing.code == "not_found"
            assert error.message.replace("'s'", "'no'") == missing.message
    assert (await circle.ask("stranger", "session:list"))["total"] == 0
    given = await circle.spawn("stranger", "kid", "writer", session="s")
    assert given["bound"] == []
    await circle.open("stranger", "s")  # a name belongs to its owner
    assert "state:set" in circle.holds("stranger", "s")
    assert "state:set" not in circle.holds("boss", "s")


async def test_who_works_in_the_session_of_another_cannot_change_it(circle: Circle) -> None:
    for event in ("session:narrow", "session:close"):
        for more in ({}, {"owner": "boss"}):
            error = await circle.error("lead", None, event, {"session": "s"} | more)
            assert error.code == "not_found"
    assert (await circle.ask("lead", "session:list"))["total"] == 0


async def test_a_session_of_the_same_name_is_no_way_out_of_the_one_above(circle: Circle) -> None:
    await circle.spawn("boss", "kid", "writer")
    await circle.open("kid", "s")
    assert "state:set" not in circle.holds("kid", "s")
    await circle.ask("boss", "session:close", {"session": "s"})
    assert circle.holds("kid", "s") == set()


async def test_closing_and_opening_again_frees_nobody_who_was_bound(circle: Circle) -> None:
    inside = await circle.told("boss", "s", "session:close", {"session": "s"})
    assert inside["agents"] == ["lead"]
    again = await circle.error("boss", "s", "session:open", {"session": "s"})
    assert again.code == "denied"  # from inside there is no way to open it again
    assert circle.holds("lead") == set()
    await circle.open("boss", "s")
    assert circle.holds("lead") == circle.holds("lead", "s") == set()
    assert "state:set" in circle.holds("boss", "s")


async def test_what_a_session_forbids_cannot_be_had_by_spawning_or_updating(
    circle: Circle,
) -> None:
    await circle.spawn("boss", "free", "lead", disallowed_tools=["state:set"])
    change = {"agent_id": "free", "disallowed_tools": []}
    assert (await circle.error("boss", "s", "agent:update", change)).code == "denied"
    assert "state:set" not in circle.holds("free")
    data = {"agent_id": "kid", "inherit": True}
    await circle.told("boss", "s", "agent:spawn", data)
    assert "state:set" not in circle.holds("kid")
    await circle.told("boss", "s", "agent:update", {"agent_id": "kid", "system_prompt": "be kind"})
    assert circle.authority.fleet.get("kid").spec.session_names == ["s"]  # type: ignore[union-attr]
    circle.files = circle_files(helper=WIDER)
    await circle.told("boss", "s", "agent:spawn", {"agent_id": "later", "profile": "helper"})
    circle.authority.put_in_force(circle.authority.prepare())
    assert "state:set" not in circle.holds("later")


async def test_a_bound_agent_cannot_spawn_or_update_its_way_out(circle: Circle) -> None:
    data = {"agent_id": "kid", "profile": "writer", "session": "other"}
    assert (await circle.error("lead", None, "agent:spawn", data)).code == "exceeds_parent"
    await circle.open("lead", "other")
    await circle.spawn("lead", "kid", "writer", session="other", on_excess="narrow")
    assert "state:set" not in circle.holds("kid")
    await circle.ask("lead", "agent:update", {"agent_id": "kid", "profile": "writer"})
    assert "state:set" not in circle.holds("kid")
    await circle.ask("boss", "agent:update", {"agent_id": "lead", "profile": "boss"})
    assert "state:set" not in circle.holds("lead") | circle.holds("kid")


async def test_what_was_remembered_for_one_agent_is_not_for_the_next_of_its_name(
    circle: Circle,
) -> None:
    await circle.spawn("stranger", "kid", "writer")
    assert "state:set" in circle.holds("kid", "s")
    await circle.ask("stranger", "agent:terminate", {"agent_id": "kid"})
    await circle.spawn("boss", "kid", "writer")
    assert "state:set" not in circle.holds("kid", "s")


async def test_a_change_of_an_agent_counts_in_its_sessions_at_once(circle: Circle) -> None:
    await circle.spawn("boss", "kid", "writer")
    assert "state:delete" in circle.holds("kid", "s")
    change = {"agent_id": "kid", "disallowed_tools": ["state:delete"]}
    await circle.ask("boss", "agent:update", change)
    assert "state:delete" not in circle.holds("kid", "s") | circle.holds("kid", "label")


async def test_a_spawn_into_a_closed_session_is_refused(circle: Circle) -> None:
    await circle.ask("boss", "session:close", {"session": "s"})
    error = await circle.error(
        "boss", None, "agent:spawn", {"agent_id": "kid", "profile": "writer", "session": "s"}
    )
    assert (error.code, error.details["session"]) == ("not_found", "s")


async def test_a_restart_widens_nothing(circle: Circle) -> None:
    await circle.open("boss", "gone")
    await circle.ask("boss", "session:close", {"session": "gone"})
    await circle.open("operator", "calm", max_effect="read")
    again = await circle.restarted()
    for who in ("boss", "lead", "stranger", "operator"):
        for session in (None, "s", "gone", "calm", "label"):
            assert again.holds(who, session) == circle.holds(who, session), (who, session)
    assert again.holds("boss", "gone") == set()
    assert "state:set" not in again.holds("lead")
    await again.narrow("boss", "s", disallowed_tools=["state:get"])
    assert "state:get" not in (await again.restarted()).holds("lead")


async def test_a_session_that_cannot_be_read_leaves_nothing(circle: Circle) -> None:
    store = circle.store
    await store.session_put(SessionRecord("boss", "s", b"\xc1 damaged"))
    again = await circle.restarted()
    assert again.holds("boss", "s") == again.holds("lead") == set()
    assert again.holds("boss") == circle.holds("boss")


async def test_a_session_that_was_lost_leaves_those_bound_to_it_nothing(circle: Circle) -> None:
    await circle.store.session_remove([("boss", "s")])
    assert (await circle.restarted()).holds("lead") == set()


async def test_a_session_goes_with_its_owner_and_is_not_the_next_ones(circle: Circle) -> None:
    store = circle.store
    kept = next(one for one in await store.session_list() if one.owner == "boss")
    await circle.ask("operator", "key:revoke", {"name": "boss"})
    assert await store.session_list() == ()
    await circle.client("boss", "boss")
    assert "state:set" in circle.holds("boss", "s")
    await store.session_put(kept)  # as if it had been left behind
    again = await circle.restarted()
    assert "state:set" in again.holds("boss", "s")
    assert await store.session_list() == ()


async def test_a_reload_changes_what_there_is_and_not_what_a_session_takes(circle: Circle) -> None:
    await circle.open("boss", "few", allowed_tools=["state:get", "system:stats"])
    circle.files = circle_files(boss="capabilities: [read, spawn]\n")
    circle.authority.put_in_force(circle.authority.prepare())
    assert circle.holds("boss", "few") == {"state:get"}
    circle.files = circle_files(boss=WIDER, lead=WIDER)
    circle.authority.put_in_force(circle.authority.prepare())
    assert circle.holds("boss", "few") == {"state:get", "system:stats"}
    assert "state:set" not in circle.holds("lead")


async def test_a_call_that_waited_runs_by_what_its_session_leaves_now(circle: Circle) -> None:
    """The session is narrowed while the call is being written down."""
    store = circle.store
    assert isinstance(store, TemporaryStore)
    await circle.open("boss", "t")
    append = store.audit_append

    async def narrow_first(entry: object, **options: object) -> object:
        store.audit_append = append  # type: ignore[method-assign]
        await circle.narrow("boss", "t", disallowed_tools=["state:set"])
        return await append(entry, **options)  # type: ignore[arg-type]

    store.audit_append = narrow_first  # type: ignore[assignment,method-assign]
    error = await circle.error("boss", "t", "state:set", {"key": "k", "value": 1})
    assert error.code == "denied"
    assert await store.state_get("k") is None


async def test_a_call_that_was_approved_runs_under_its_session(circle: Circle) -> None:
    circle.files = circle_files(gated="capabilities: [write]\napproval_required: [state:set]\n")
    circle.authority.put_in_force(circle.authority.prepare())
    await circle.client("gated", "gated")
    await circle.open("gated", "t", limits={"state_prefixes": ["a/"]})
    answers = []

    async def write() -> None:
        data = {"key": "b/k", "value": 1}
        answers.append(await circle.error("gated", "t", "state:set", data))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            pending: list[dict[str, str]] = []
            while not pending:
                await anyio.lowlevel.checkpoint()
                pending = (await circle.ask("operator", "review:list"))["items"]
            decision = {"id": pending[0]["id"], "decision": "approve"}
            await circle.ask("operator", "review:decide", decision)
    assert [error.code for error in answers] == ["denied"]
    assert await circle.store.state_get("b/k") is None


class FullStore(TemporaryStore):
    """A store that keeps no more sessions."""

    async def session_put(self, record: SessionRecord) -> None:
        raise StoreError("no space left")


async def test_what_cannot_be_written_narrows_all_the_same_and_opens_nothing(
    circle: Circle,
) -> None:
    circle.kernel.sessions._rows = FullStore()
    step = {"session": "s", "disallowed_tools": ["state:get"]}
    error = await circle.error("boss", None, "session:narrow", step)
    assert error.code == "store_unavailable"
    assert "state:get" not in circle.holds("lead")
    error = await circle.error("boss", None, "session:close", {"session": "s"})
    assert error.code == "store_unavailable"
    assert circle.holds("lead") == circle.holds("boss", "s") == set()
    error = await circle.error("boss", None, "session:open", {"session": "new"})
    assert error.code == "store_unavailable"
    assert circle.authority.fleet.sessions.get("boss", "new") is None


class LateStore(TemporaryStore):
    """A store in whose time the owner is ended."""

    def __init__(self, circle: Circle) -> None:
        super().__init__()
        self.circle = circle

    async def session_put(self, record: SessionRecord) -> None:
        await super().session_put(record)
        await self.circle.ask("operator", "key:revoke", {"name": record.owner})


async def test_a_session_whose_owner_was_ended_meanwhile_is_not_left_behind(
    circle: Circle,
) -> None:
    store = circle.kernel.sessions._rows = LateStore(circle)
    error = await circle.error("boss", None, "session:open", {"session": "new"})
    assert error.code == "unknown_agent"
    assert await store.session_list() == ()
    assert circle.authority.fleet.sessions.get("boss", "new") is None


async def test_of_two_that_open_one_name_at_once_one_is_told_of_the_other(circle: Circle) -> None:
    codes = []

    async def open_it() -> None:
        answer = await circle.inside("boss", None, "session:open", {"session": "new"})
        codes.append("" if answer.error is None else answer.error.code)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_it)
        tasks.start_soon(open_it)
    assert sorted(codes) == ["", "conflict"]


async def test_a_refusal_in_a_session_is_the_same_whether_or_not_the_event_exists(
    circle: Circle,
) -> None:
    await circle.spawn("boss", "kid", "helper", session="s")
    for who, session in (("kid", None), ("kid", "s")):
        there = await circle.error(who, session, "key:add", {})
        absent = await circle.error(who, session, "key:adx", {})
        assert there.message.replace("key:add", "key:adx") == absent.message
        assert there.details | {"event": "key:adx"} == absent.details
        why = [
            await circle.told(who, session, "permission:explain", {"event": event})
            for event in ("key:add", "key:adx")
        ]
        assert why[0] | {"event": "key:adx"} == why[1]


async def test_what_binds_those_above_has_no_name_for_those_below(circle: Circle) -> None:
    await circle.spawn("lead", "kid", "writer", on_excess="narrow")
    why = await circle.told("kid", None, "permission:explain", {"event": "state:set"})
    assert (why["cut_by"], why["session"]) == ("lead", None)
    why = await circle.told(
        "boss", None, "permission:explain", {"event": "state:set", "agent": "kid"}
    )
    assert (why["cut_by"], why["session"]) == ("lead", "s")
