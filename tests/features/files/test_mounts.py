"""Files that come with a capability."""

import msgspec
import pytest
from tests.fakes import Desk, built_in_handlers, texts
from tests.features.desks import Office

from remit.errors import DefinitionError
from remit.features.files.store import FileLimits
from remit.model.principal import AgentSpec

GUIDE = "/docs/guide.md"
NOTES = "/docs/notes.md"


@pytest.fixture
def office() -> Office:
    office = Office.with_handbook()
    office.hire("ann", profile="reader")
    office.hire("bob", profile="other")
    return office


async def test_a_mounted_file_is_there_for_holders_and_for_nobody_else(office: Office) -> None:
    assert await office.all_paths("ann") == [GUIDE, NOTES]
    assert await office.all_paths("ann", "any session") == [GUIDE, NOTES]
    assert await office.all_paths("bob") == []
    assert await office.refused("bob", "file:read_file", {"path": GUIDE}) == "not_found"
    found = await office.ask("ann", "file:read_file", {"path": GUIDE})
    assert (found["content"], found["size_bytes"]) == ("read me\nthen act\n", 17)


async def test_a_read_only_file_says_so_and_cannot_be_changed(office: Office) -> None:
    seen = await office.ask("ann", "file:stat_file", {"path": GUIDE})
    assert (seen["is_readonly"], seen["size_bytes"], seen["updated_at"]) == (True, 17, None)
    for event, data in (
        ("file:write_file", {"path": GUIDE, "content": "x"}),
        ("file:write_file", {"path": f"{GUIDE}/x", "content": "x"}),
        ("file:write_file", {"path": "/docs", "content": "x"}),
        ("file:delete_file", {"path": GUIDE}),
        ("file:delete_file", {"path": "/docs", "recursive": True}),
        ("file:delete_file", {"path": "/", "recursive": True}),
    ):
        assert await office.refused("ann", event, data) == "conflict", (event, data)
    assert await office.all_paths("ann") == [GUIDE, NOTES]


async def test_a_file_mounted_for_writing_is_changed_in_one_session_only(office: Office) -> None:
    changed = await office.ask("ann", "file:write_file", {"path": NOTES, "content": "mine"})
    assert changed["created"] is False
    mine = await office.ask("ann", "file:read_file", {"path": NOTES})
    other = await office.ask("ann", "file:read_file", {"path": NOTES}, "another")
    assert (mine["content"], other["content"]) == ("mine", "draft")
    assert await office.all_paths("ann") == [GUIDE, NOTES]
    assert await office.refused("ann", "file:delete_file", {"path": NOTES}) == "conflict"


async def test_a_search_finds_each_file_as_it_reads(office: Office) -> None:
    async def found(pattern: str) -> list[str]:
        answer = await office.ask("ann", "file:grep_files", {"pattern": pattern})
        return [match.path for match in answer["matches"]]

    assert await found("act|draft") == [GUIDE, NOTES]
    await office.write("ann", NOTES, "final")
    assert await found("draft") == []
    assert await found("final") == [NOTES]


async def test_mounts_take_no_room_of_the_session(office: Office) -> None:
    office.desk.kernel.provide(FileLimits(size=10, count=1, total=10))
    await office.write("ann", "/own")
    assert await office.all_paths("ann") == [GUIDE, NOTES, "/own"]


@pytest.mark.parametrize("path", ["/docs", f"{GUIDE}/below"])
async def test_what_was_written_before_does_not_hide_a_mount(office: Office, path: str) -> None:
    await office.write("bob", path)
    fleet = office.desk.authority.fleet
    agent = fleet.get("bob")
    assert agent is not None
    fleet.replace(msgspec.structs.replace(agent, spec=AgentSpec(profile="reader")))
    assert await office.all_paths("bob") == [GUIDE, NOTES]
    seen = await office.ask("bob", "file:read_file", {"path": GUIDE})
    assert seen["content"].startswith("read me")
    if path != "/docs":
        assert (await office.ask("bob", "file:stat_file", {"path": path}))["exists"] is False
        answer = await office.ask("bob", "file:grep_files", {"pattern": "^x$"})
        assert answer["matches"] == []


@pytest.mark.parametrize(
    ("first", "second"), [("/a", "/a"), ("/a", "/a/b"), ("/a/b", "/a"), ("/a", "/a/b/c")]
)
def test_two_capabilities_cannot_mount_in_each_others_way(first: str, second: str) -> None:
    catalogue = "".join(
        f"  {name}: {{description: x, mounts: [{{path: {path}, content: x}}]}}\n"
        for name, path in (("one", first), ("two", second))
    )
    with pytest.raises(DefinitionError) as caught:
        Desk(built_in_handlers(), texts(catalogue))
    assert [problem.code for problem in caught.value.problems] == ["mount_conflict"]


def test_mounts_beside_each_other_are_fine() -> None:
    mounts = "[{path: /a/b, content: x}, {path: /a/c, content: x}, {path: /a0, content: x}]"
    Desk(built_in_handlers(), texts(f"  one: {{description: x, mounts: {mounts}}}\n"))
