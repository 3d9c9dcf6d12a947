"""Whose files a request sees: its own session's, and nobody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.features.desks import Office

from remit.model.principal import OPERATOR_ID


@pytest.fixture
def office() -> Office:
    office = Office()
    for name in ("ann", "bob"):
        office.hire(name)
    return office


async def spawn(office: Office, parent: str, name: str, session: str | None) -> None:
    """As `agent:spawn` does it: bound to the sessions of that name above."""
    fleet = office.desk.authority.fleet
    given_sessions = fleet.sessions.named(session, fleet.line(parent)) if session else ()
    bound = {one.id: one.name for one in given_sessions}
    office.hire(name, parent=parent, session=session, bound=bound)


async def test_the_same_name_of_two_strangers_is_two_sessions(office: Office) -> None:
    await office.write("ann", "/secret", session="work")
    assert await office.all_paths("bob", "work") == []
    assert await office.all_paths(OPERATOR_ID, "work") == []
    await office.ask("ann", "session:open", {"session": "work"})
    assert await office.all_paths("bob", "work") == []
    await office.ask("bob", "session:open", {"session": "work"})
    assert await office.all_paths("bob", "work") == []


async def test_a_request_without_a_session_has_files_of_its_own(office: Office) -> None:
    await office.write("ann", "/plain")
    await office.write("ann", "/named", session="work")
    assert await office.all_paths("ann") == ["/plain"]
    assert await office.all_paths("ann", "work") == ["/named"]


async def test_opening_a_session_keeps_the_files_of_its_label_and_closing_it_removes_them(
    office: Office,
) -> None:
    await office.write("ann", "/a", session="work")
    await office.ask("ann", "session:open", {"session": "work"})
    assert await office.all_paths("ann", "work") == ["/a"]
    await office.ask("ann", "session:close", {"session": "work"})
    await office.ask("ann", "session:open", {"session": "work"})
    assert await office.all_paths("ann", "work") == []


async def test_a_child_shares_the_session_that_it_was_spawned_into_and_no_other(
    office: Office,
) -> None:
    for session in ("work", "private"):
        await office.ask("ann", "session:open", {"session": session})
        await office.write("ann", f"/{session}", session=session)
    await spawn(office, "ann", "child", "work")
    assert await office.all_paths("child") == ["/work"]
    assert await office.all_paths("child", "work") == ["/work"]
    assert await office.all_paths("child", "private") == []
    await office.write("child", "/answer")
    assert await office.all_paths("ann", "work") == ["/answer", "/work"]
    assert await office.all_paths("ann") == []


async def test_a_grandchild_is_bound_by_the_one_between(office: Office) -> None:
    await office.ask("ann", "session:open", {"session": "work"})
    await office.write("ann", "/work", session="work")
    await spawn(office, "ann", "child", "work")
    await spawn(office, "child", "grandchild", None)
    assert await office.all_paths("grandchild") == []
    assert await office.all_paths("grandchild", "work") == ["/work"]


async def test_a_grandchild_may_be_bound_past_the_one_between(office: Office) -> None:
    await office.ask("ann", "session:open", {"session": "work"})
    await office.write("ann", "/work", session="work")
    await spawn(office, "ann", "child", None)
    await spawn(office, "child", "grandchild", "work")
    assert await office.all_paths("grandchild") == ["/work"]
    assert await office.all_paths("child", "work") == []


async def test_a_child_that_was_not_bound_sees_nothing_of_its_parent(office: Office) -> None:
    await office.ask("ann", "session:open", {"session": "work"})
    await office.write("ann", "/work", session="work")
    await office.write("ann", "/plain")
    await spawn(office, "ann", "child", None)
    await spawn(office, "ann", "labelled", "just a label")
    for who in ("child", "labelled"):
        assert await office.all_paths(who) == []
        assert await office.all_paths(who, "work") == []


async def test_a_child_in_a_mere_label_of_its_parent_has_files_of_its_own(office: Office) -> None:
    await office.write("ann", "/a", session="label")
    await spawn(office, "ann", "child", "label")
    assert await office.all_paths("child") == []
    await office.write("child", "/c")
    assert await office.all_paths("child", "label") == ["/c"]
    assert await office.all_paths("ann", "label") == ["/a"]


async def test_a_session_of_ones_own_goes_before_that_of_a_parent(office: Office) -> None:
    await office.ask("ann", "session:open", {"session": "work"})
    await spawn(office, "ann", "child", "work")
    await office.write("child", "/shared")
    await office.ask("child", "session:open", {"session": "work"})
    assert await office.all_paths("child") == []
    assert await office.all_paths("ann", "work") == ["/shared"]


async def test_a_later_agent_of_the_same_name_inherits_no_files(office: Office) -> None:
    await office.write("ann", "/old")
    await office.write("ann", "/old", session="work")
    office.desk.authority.fleet.remove(["ann"])
    office.hire("ann", key="another-key")
    assert await office.all_paths("ann") == []
    assert await office.all_paths("ann", "work") == []


AGENTS = ["ann", "bob", "child", "free", OPERATOR_ID]
SESSIONS = ["", "work", "play"]
AREAS = {(who, session): (who, session) for who in AGENTS for session in SESSIONS}
# `child` was spawned into the session that ann opened, `free` is her child too, and in none.
AREAS |= {("child", ""): ("ann", "work"), ("child", "work"): ("ann", "work")}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(AGENTS),
        st.sampled_from(SESSIONS),
        st.sampled_from(["write", "delete", "delete all"]),
        st.sampled_from(["/a", "/b", "/c"]),
    ),
    max_size=25,
)


@given(steps=STEPS)
async def test_no_use_of_files_is_ever_seen_in_another_session(
    steps: list[tuple[str, str, str, str]],
) -> None:
    office = Office()
    office.hire("ann")
    office.hire("bob")
    await office.ask("ann", "session:open", {"session": "work"})
    await spawn(office, "ann", "child", "work")
    await spawn(office, "ann", "free", None)
    model: dict[tuple[str, str], dict[str, str]] = {area: {} for area in AREAS.values()}
    for number, (who, session, step, path) in enumerate(steps):
        files = model[AREAS[who, session]]
        if step == "write":
            files[path] = str(number)
            await office.write(who, path, str(number), session)
            continue
        data = {"path": path if step == "delete" else "/", "recursive": step != "delete"}
        await office.ask(who, "file:delete_file", data, session or None)
        if step == "delete":
            files.pop(path, None)
        else:
            files.clear()
    for (who, session), area in AREAS.items():
        assert await office.all_paths(who, session) == sorted(model[area])
        answer = await office.ask(who, "file:grep_files", {"pattern": "."}, session or None)
        assert {m.path: m.line for m in answer["matches"]} == model[area]
        for path in ("/a", "/b", "/c"):
            seen = await office.ask(who, "file:stat_file", {"path": path}, session or None)
            assert seen["exists"] == (path in model[area])
