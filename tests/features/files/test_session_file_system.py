"""Files of a session: what the tools do, and what they never do."""

import base64
from typing import Any

import pytest
from tests.features.desks import Office

from remit.features.files.store import FileLimits


@pytest.fixture
def office() -> Office:
    office = Office()
    office.hire("ann")
    return office


async def test_a_file_is_written_read_and_written_over(office: Office) -> None:
    data = {"path": "/a/b/c.txt", "content": "grüße"}
    first = await office.ask("ann", "file:write_file", data)
    assert first == {"path": "/a/b/c.txt", "size_bytes": 7, "created": True}
    again = await office.ask("ann", "file:write_file", data | {"content": "x"})
    assert again == {"path": "/a/b/c.txt", "size_bytes": 1, "created": False}
    assert await office.ask("ann", "file:read_file", {"path": "/a/b/c.txt"}) == {
        "path": "/a/b/c.txt",
        "content": "x",
        "encoding": "text",
        "size_bytes": 1,
    }


@pytest.mark.parametrize("content", [b"", b"text", b"\xff\x00", b"nul\0", bytes(range(256))])
async def test_bytes_come_back_as_they_were(office: Office, content: bytes) -> None:
    sent = base64.b64encode(content).decode()
    data = {"path": "/f", "content": sent, "encoding": "base64"}
    await office.ask("ann", "file:write_file", data)
    found = await office.ask("ann", "file:read_file", {"path": "/f"})
    if found["encoding"] == "text":
        assert found["content"].encode() == content
    else:
        assert base64.b64decode(found["content"]) == content
    assert found["size_bytes"] == len(content)


@pytest.mark.parametrize("content", ["x", "ä===", "eA", "eA=="[:-1], " eA==", "eA==\n"])
async def test_what_is_not_base64_is_refused(office: Office, content: str) -> None:
    data = {"path": "/f", "content": content, "encoding": "base64"}
    assert await office.refused("ann", "file:write_file", data) == "invalid_data"
    assert await office.all_paths("ann") == []


async def test_a_directory_is_listed_by_name_with_what_lies_in_it(office: Office) -> None:
    for path in ("/b.txt", "/a/x", "/a/y/z", "/a0"):
        await office.write("ann", path, "12")
    listed = await office.ask("ann", "file:list_directory")
    assert (listed["path"], listed["count"], listed["next"]) == ("/", 3, None)
    assert [(e["name"], e["is_directory"], e["size_bytes"]) for e in listed["entries"]] == [
        ("a", True, 4),
        ("a0", False, 2),
        ("b.txt", False, 2),
    ]
    below = await office.ask("ann", "file:list_directory", {"path": "/a"})
    assert [entry["name"] for entry in below["entries"]] == ["x", "y"]


async def test_a_long_directory_comes_in_pages(office: Office) -> None:
    for number in range(5):
        await office.write("ann", f"/d/{number}/f")
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        data = {"path": "/d", "limit": 2, "after": after}
        page = await office.ask("ann", "file:list_directory", data)
        assert (len(page["entries"]) <= 2, page["count"]) == (True, 5)
        seen += [entry["name"] for entry in page["entries"]]
        after = page["next"]
    assert seen == ["0", "1", "2", "3", "4"]


async def test_a_directory_is_there_as_long_as_something_is_in_it(office: Office) -> None:
    await office.write("ann", "/a/b/c")
    assert (await office.ask("ann", "file:stat_file", {"path": "/a/b"}))["is_directory"] is True
    deleted = await office.ask("ann", "file:delete_file", {"path": "/a/b/c"})
    assert deleted == {"path": "/a/b/c", "deleted": True, "count": 1}
    assert (await office.ask("ann", "file:stat_file", {"path": "/a"}))["exists"] is False
    assert await office.refused("ann", "file:list_directory", {"path": "/a"}) == "not_found"


async def test_a_directory_goes_only_as_a_whole(office: Office) -> None:
    for path in ("/a/b", "/a/c/d", "/ab"):
        await office.write("ann", path)
    assert await office.refused("ann", "file:delete_file", {"path": "/a"}) == "conflict"
    data = {"path": "/a", "recursive": True}
    gone = await office.ask("ann", "file:delete_file", data)
    assert (gone["deleted"], gone["count"]) == (True, 2)
    assert await office.all_paths("ann") == ["/ab"]
    again = await office.ask("ann", "file:delete_file", data)
    assert (again["deleted"], again["count"]) == (False, 0)


async def test_a_path_is_told_about_whether_or_not_there_is_a_file(office: Office) -> None:
    await office.write("ann", "/a/b.txt", "123")
    found = await office.ask("ann", "file:stat_file", {"path": "/a/b.txt"})
    assert found == {
        "path": "/a/b.txt",
        "name": "b.txt",
        "exists": True,
        "is_directory": False,
        "is_readonly": False,
        "size_bytes": 3,
        "created_at": 0.0,
        "updated_at": 0.0,
    }
    root = await office.ask("ann", "file:stat_file", {"path": "/"})
    assert (root["exists"], root["is_directory"], root["size_bytes"]) == (True, True, 3)
    absent = await office.ask("ann", "file:stat_file", {"path": "/a/c"})
    assert (absent["exists"], absent["is_directory"], absent["created_at"]) == (False, False, None)


async def test_what_is_not_there_is_refused_with_the_nearest_path(office: Office) -> None:
    await office.write("ann", "/docs/readme.txt")
    answer = await office.answer("ann", "file:read_file", {"path": "/docs/readme.tx"})
    assert answer.error is not None
    assert (answer.error.code, answer.error.hint) == (
        "not_found",
        "did you mean '/docs/readme.txt'?",
    )


async def test_files_and_directories_are_not_mixed_up(office: Office) -> None:
    await office.write("ann", "/a/b")
    for event, path in (
        ("file:read_file", "/a"),
        ("file:read_file", "/"),
        ("file:list_directory", "/a/b"),
    ):
        assert await office.refused("ann", event, {"path": path}) == "conflict"
    for path in ("/a", "/", "/a/b/c"):
        data = {"path": path, "content": ""}
        assert await office.refused("ann", "file:write_file", data) == "conflict"


ATTACKS = [
    *("", "a", "./a", "../a", "a/b", "~/a", "C:\\a", "file:///a"),
    *("/..", "/../etc/passwd", "/a/..", "/a/../b", "/a/./b", "/.", "/a/...", "/a./b"),
    *("//", "//a", "/a//b", "/a/", "///"),
    *("/a\0", "/a\0.txt", "/\n", "/a\x1b[2J", "/a\u202eb", "/a\u200bb", "/\ufeff"),
    *("/a\\b", "/a\\..\\b", "/ a", "/a ", "/a/ ", "/\u00a0"),
    *("/e\u0301", "/" + "a" * 256, "/a" * 33, "/" + "ä" * 600),
]
EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("file:read_file", {}),
    ("file:write_file", {"content": "x"}),
    ("file:list_directory", {}),
    ("file:delete_file", {"recursive": True}),
    ("file:stat_file", {}),
]


@pytest.mark.parametrize("path", ATTACKS)
async def test_a_path_that_could_lead_elsewhere_is_refused_by_every_tool(
    office: Office, path: str
) -> None:
    await office.write("ann", "/kept")
    for event, data in EVENTS:
        assert await office.refused("ann", event, data | {"path": path}) == "invalid_data", event
    assert await office.all_paths("ann") == ["/kept"]


@pytest.mark.parametrize(
    "path", ["/.hidden", "/a..b", "/%2e%2e/x", "/é", "/日本/語", "/a b", "/...x", "/a:b", "/~"]
)
async def test_a_strange_but_harmless_path_is_just_a_name(office: Office, path: str) -> None:
    await office.write("ann", path)
    assert await office.all_paths("ann") == [path]


async def test_a_session_keeps_no_more_than_it_may(office: Office) -> None:
    office.desk.kernel.provide(FileLimits(size=10, count=2, total=15))
    await office.write("ann", "/a", "x" * 10)
    too_large = {"path": "/b", "content": "x" * 11}
    assert await office.refused("ann", "file:write_file", too_large) == "too_large"
    too_much = {"path": "/b", "content": "x" * 6}
    assert await office.refused("ann", "file:write_file", too_much) == "limit_exceeded"
    await office.write("ann", "/b", "x" * 5)
    one_more = {"path": "/c", "content": ""}
    assert await office.refused("ann", "file:write_file", one_more) == "limit_exceeded"
    await office.write("ann", "/c", "x" * 10, session="another")
    assert await office.all_paths("ann") == ["/a", "/b"]


async def test_a_change_of_files_is_audited_without_their_content(office: Office) -> None:
    await office.write("ann", "/a", "y" * 5000)
    await office.ask("ann", "file:delete_file", {"path": "/a"})
    rows = (await office.desk.store.audit_query()).items
    assert [row.entry.event for row in rows] == ["file:delete_file", "file:write_file"]
    assert b"y" * 201 not in rows[1].entry.details


# ---- searching ----


async def grep(office: Office, pattern: str, **more: Any) -> Any:
    return await office.ask("ann", "file:grep_files", {"pattern": pattern, **more})


def found(answer: Any) -> list[tuple[str, int, str]]:
    return [(match.path, match.line_number, match.line) for match in answer["matches"]]


async def test_lines_are_found_with_their_numbers(office: Office) -> None:
    await office.write("ann", "/b.txt", "one\r\ntwo\nonetwo\n\none")
    await office.write("ann", "/a/c.md", "nothing")
    answer = await grep(office, "^one")
    assert found(answer) == [("/b.txt", 1, "one"), ("/b.txt", 3, "onetwo"), ("/b.txt", 5, "one")]
    assert (answer["match_count"], answer["files_searched"], answer["truncated"]) == (3, 2, False)


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("b$", [1]),
        ("(?i)B", [1, 2]),
        ("", None),
        ("^$", [3]),
        (r"\s", [2]),
        ("a.*c", []),
        ("a|d", [1, 2]),
        (r"[^x]", [1, 2]),
        ("ü", [2]),
        ("^.ü", []),
        ("^d .ü", []),
        ("^d ü", [2]),
    ],
)
async def test_a_pattern_is_about_one_line_at_a_time(
    office: Office, pattern: str, lines: list[int] | None
) -> None:
    await office.write("ann", "/f", "ab\nd üb!\n\n")
    if lines is None:
        data = {"pattern": pattern}
        assert await office.refused("ann", "file:grep_files", data) == "invalid_data"
    else:
        assert [number for _, number, _ in found(await grep(office, pattern))] == lines


@pytest.mark.parametrize(
    ("path_pattern", "paths"),
    [
        ("", ["/a.txt", "/docs/b.txt", "/docs/d.md", "/docs/deep/c.txt"]),
        ("*.txt", ["/a.txt", "/docs/b.txt", "/docs/deep/c.txt"]),
        ("?.md", ["/docs/d.md"]),
        ("/docs/*", ["/docs/b.txt", "/docs/d.md"]),
        ("/docs/**", ["/docs/b.txt", "/docs/d.md", "/docs/deep/c.txt"]),
        ("/**/c.txt", ["/docs/deep/c.txt"]),
        ("deep/*", ["/docs/deep/c.txt"]),
        ("/*.txt", ["/a.txt"]),
        ("*.TXT", []),
        ("[a].txt", []),
        (".*", []),
        ("(", []),
    ],
)
async def test_only_paths_like_the_pattern_are_searched(
    office: Office, path_pattern: str, paths: list[str]
) -> None:
    for path in ("/a.txt", "/docs/b.txt", "/docs/deep/c.txt", "/docs/d.md"):
        await office.write("ann", path, "here")
    answer = await grep(office, "here", path_pattern=path_pattern)
    assert [path for path, _, _ in found(answer)] == paths
    assert answer["files_searched"] == len(paths)


async def test_matches_are_bounded_and_all_of_them_counted(office: Office) -> None:
    await office.write("ann", "/f", "x\n" * 1000)
    answer = await grep(office, "x", limit=3)
    assert [number for _, number, _ in found(answer)] == [1, 2, 3]
    assert (answer["match_count"], answer["truncated"]) == (1000, True)


async def test_long_lines_are_cut_and_do_not_fill_the_answer(office: Office) -> None:
    await office.write("ann", "/f", ("y" * 1000 + "\n") * 500)
    answer = await grep(office, "y", limit=500)
    assert {len(line) for _, _, line in found(answer)} == {300}
    assert sum(len(line) for _, _, line in found(answer)) < 300_000
    assert (answer["match_count"], answer["truncated"]) == (500, len(answer["matches"]) < 500)


async def test_what_is_no_text_is_not_searched(office: Office) -> None:
    data = {"path": "/f", "content": base64.b64encode(b"x\0y").decode(), "encoding": "base64"}
    await office.ask("ann", "file:write_file", data)
    assert (await grep(office, "x"))["files_searched"] == 0


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a)(b",
        r"(a)\1",
        "(?=a)",
        "(?<!a)b",
        "a{1001}",
        "(a{1000}){1000}",
        r"\p{Nope}",
        "\ud800",
    ],
)
async def test_a_pattern_that_needs_a_slow_engine_or_is_none_is_refused(
    office: Office, pattern: str
) -> None:
    await office.write("ann", "/f", "a")
    answer = await office.answer("ann", "file:grep_files", {"pattern": pattern})
    assert answer.error is not None
    assert (answer.error.code, answer.error.details) == ("invalid_data", {"path": "$.pattern"})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){20}b", "(x+x+)+y"])
async def test_a_regex_bomb_takes_no_more_than_a_look_at_each_letter(
    office: Office, pattern: str
) -> None:
    await office.write("ann", "/f", "a" * 200_000 + "!")
    assert (await grep(office, pattern))["match_count"] == 0


async def test_a_search_that_takes_too_long_ends_and_says_so(office: Office) -> None:
    ticks = iter(range(0, 1000, 4))
    office.desk.kernel.clock = lambda: float(next(ticks))
    for number in range(9):
        await office.write("ann", f"/{number}", "x")
    answer = await grep(office, "x")
    assert answer["truncated"] is True
    assert 0 < answer["match_count"] < 9
