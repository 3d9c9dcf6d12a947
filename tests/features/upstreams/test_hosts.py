"""Servers of a host's file: whatever stands in it, no secret is taken over and no name doubled."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import InvalidDataError
from remit.features.upstreams.hosts import (
    HostFile,
    HostImport,
    import_servers,
    read_host_file,
    server_names,
)
from remit.features.upstreams.secrets import SecretNames, is_secret_name, looks_secret

TOKEN = "ghp_abcdefghijklmnop0123456789"  # noqa: S105 - not one, but it must be taken for one
PIECES = [TOKEN, "plain", "${API_KEY}", "${input:key}", "${env:HOME_DIR}", "${workspaceFolder}"]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=2).map("-".join)
VALUES = TEXTS | st.none() | st.booleans() | st.integers() | st.lists(TEXTS, max_size=2)
KEYS = st.sampled_from(["A", "API_KEY", "X-Team", "Authorization", "a b"])
SERVERS = st.fixed_dictionaries(
    {},
    optional={
        "command": VALUES,
        "args": st.lists(VALUES, max_size=3) | VALUES,
        "url": TEXTS.map("https://x.example/{}".format) | VALUES,
        "env": st.dictionaries(KEYS, VALUES, max_size=2) | VALUES,
        "headers": st.dictionaries(KEYS, VALUES, max_size=2) | VALUES,
        "cwd": VALUES,
        "type": st.sampled_from(["stdio", "http", "sse", "ws", None]),
        "disabled": st.booleans(),
    },
)


def imported(servers: dict[str, Any], **inputs: str) -> HostImport:
    return import_servers(HostFile(servers, inputs), servers, {}, ())


@given(st.dictionaries(st.sampled_from(["a", "b", "GitHub"]), SERVERS | VALUES, max_size=3))
def test_no_secret_of_a_host_is_written_or_told(servers: dict[str, Any]) -> None:
    found = imported(servers)
    assert TOKEN not in msgspec.json.encode(found).decode()


@given(st.dictionaries(st.sampled_from(["a", "b", "GitHub"]), SERVERS | VALUES, max_size=3))
def test_each_server_is_taken_over_passed_over_or_told(servers: dict[str, Any]) -> None:
    found = imported(servers)
    told = [one.source for one in found.taken]
    told += [one.source for one in (*found.skipped, *found.obstacles)]
    assert sorted(told) == sorted(servers)
    assert all(one.message and one.hint for one in found.obstacles)


@given(st.dictionaries(st.sampled_from(["a", "b", "GitHub"]), SERVERS, max_size=3))
def test_a_secret_that_an_entry_names_is_one_that_is_asked_for(servers: dict[str, Any]) -> None:
    for one in imported(servers).taken:
        values = [*one.entry.get("env", {}).values(), *one.entry.get("headers", {}).values()]
        named = {value["secret"] for value in values if isinstance(value, dict)}
        assert named == {needed.name for needed in one.needs}
        assert all(needed.server == one.name for needed in one.needs)


SOURCES = st.lists(st.text(max_size=40) | st.sampled_from(["a", "A", "a ", "é", "9"]), max_size=6)


@given(SOURCES)
def test_two_servers_never_get_one_name_and_every_name_is_one(sources: list[str]) -> None:
    names = server_names(sources)
    assert names.keys() == set(sources)
    assert len(set(names.values())) == len(names)
    for name in names.values():
        assert re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", name), name


@given(SOURCES)
def test_names_do_not_depend_on_the_order_of_a_file(sources: list[str]) -> None:
    assert server_names(sources) == server_names(reversed(sources))


def test_a_name_that_needs_no_change_is_kept_before_others_may_have_it() -> None:
    assert server_names(["Git", "git"]) == {"Git": "git-2", "git": "git"}


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=6))
def test_two_secrets_never_get_one_name(asked: list[tuple[str, str]]) -> None:
    names = SecretNames({"TAKEN"})
    given_names = [names.give(server, key) for server, key in asked]
    assert len({*given_names, "TAKEN"}) == len(asked) + 1
    for name in given_names:
        assert re.fullmatch(r"[A-Z_][A-Z0-9_]*", name), name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("API_KEY", "x1"),
        ("apiKey", "x1"),
        ("x-api-key", "x1"),
        ("GITHUBTOKEN", "x1"),
        ("DATABASE_PASSWORD", "hunter"),
        ("Authorization", "Bearer abc"),
        ("ANYTHING", TOKEN),
        ("DSN", "postgres://me:pw@db/x"),
    ],
)
def test_what_looks_secret_by_its_name_or_its_text(name: str, text: str) -> None:
    assert looks_secret(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LEVEL", "debug"),
        ("API_KEY", "true"),
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("URL", "https://api.example.com/v1/things"),
        ("MODEL", "all-MiniLM-L6-v2"),
        ("TOKEN_LIMIT", "4096"),
    ],
)
def test_what_is_ordinary_stays_readable(name: str, text: str) -> None:
    assert not looks_secret(name, text)


@pytest.mark.parametrize("name", ["KEYBOARD", "MONKEY", "tokenizer", "AUTHOR", "level"])
def test_a_word_that_only_holds_such_a_name_is_none(name: str) -> None:
    assert not is_secret_name(name)


def read(folder: Path, content: Any) -> HostFile:
    path = folder / "host.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return read_host_file(path, folder)


def test_servers_of_other_projects_are_told_and_not_taken(tmp_path: Path) -> None:
    server: dict[str, Any] = {}
    here, there = {"mcpServers": {"here": server}}, {"mcpServers": {"there": server}}
    projects = {str(tmp_path): here, "/else": there}
    found = read(tmp_path, {"mcpServers": {"all": server}, "projects": projects})
    assert set(found.servers) == {"all", "here"}
    assert [note for note in found.notes if "/else" in note]


def test_a_server_in_two_places_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="stands in two places"):
        read(tmp_path, {"mcpServers": {"a": {}}, "mcp": {"servers": {"a": {}}}})


@pytest.mark.parametrize("inputs", [None, {}, [None, {"id": 3}, {"description": "x"}], "x"])
def test_inputs_that_are_none_are_passed_over(tmp_path: Path, inputs: Any) -> None:
    assert read(tmp_path, {"servers": {}, "inputs": inputs}).inputs == {}


def test_what_a_host_asks_its_user_for_is_said_with_the_secret(tmp_path: Path) -> None:
    asked = [{"id": "key", "description": "Your key"}, {"id": "bare"}]
    found = read(tmp_path, {"mcp": {"servers": {}, "inputs": asked}})
    assert found.inputs == {"key": "Your key", "bare": "bare"}
    servers = {"a": {"command": "x", "env": {"A": "${input:key}"}}}
    (one,) = imported(servers, **found.inputs).taken
    assert one.needs[0].was == "${input:key}, asked for as 'Your key'"
