"""upstream import: everything of a host's file is taken over or told, and no secret is written."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shell import Shell

from remit.features.upstreams.file import read_upstreams
from remit.features.upstreams.hosts import server_names
from remit.model.upstream import Upstream

TOKEN = "ghp_abcdefghijklmnop0123456789"  # noqa: S105 - not one, but it must be taken for one


def host(shell: Shell, content: Any, name: str = ".mcp.json") -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    return str(shell.write(name, text))


def servers(shell: Shell) -> dict[str, Upstream]:
    return {one.name: one for one in read_upstreams(shell.folder / "home" / "upstreams.yaml")}


def written(shell: Shell) -> str:
    file = shell.folder / "home" / "upstreams.yaml"
    return file.read_text() if file.exists() else ""


CLAUDE = {
    "mcpServers": {
        "GitHub MCP": {
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {"GITHUB_TOKEN": TOKEN, "LEVEL": "debug", "N": 5, "ON": True},
        },
        "remote": {
            "type": "http",
            "url": "https://api.example.com/mcp",
            "headers": {"Authorization": "Bearer ${API_TOKEN}", "X-Team": "blue"},
        },
    }
}


def test_servers_of_claude_are_taken_over_without_their_secrets(shell: Shell) -> None:
    report = shell.json("upstream", "import", host(shell, CLAUDE))
    assert report["written"] is True
    github, remote = servers(shell)["github-mcp"], servers(shell)["remote"]
    assert (github.command, github.args) == ("npx", ("-y", "@modelcontextprotocol/server-github"))
    assert github.env == {"LEVEL": "debug", "N": "5", "ON": "true"}
    assert github.secret_env == {"GITHUB_TOKEN": "GITHUB_MCP_GITHUB_TOKEN"}
    assert (remote.url, remote.headers) == ("https://api.example.com/mcp", {"X-Team": "blue"})
    assert remote.secret_headers == {"Authorization": "REMOTE_AUTHORIZATION"}
    assert {one.trust for one in (github, remote)} == {"review"}
    assert TOKEN not in written(shell) + json.dumps(report)
    assert [(one["name"], one["source"]) for one in report["servers"]] == [
        ("github-mcp", "GitHub MCP"),
        ("remote", "remote"),
    ]
    needed = {one["name"]: one["was"] for one in report["secrets"]}
    assert needed == {
        "GITHUB_MCP_GITHUB_TOKEN": "a value that looks secret",
        "REMOTE_AUTHORIZATION": "put together: Bearer ${API_TOKEN}",
    }


def test_the_summary_names_the_mapping_the_variables_and_the_next_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_SHOW_NEXT", "1")
    done = shell.run("upstream", "import", host(shell, CLAUDE))
    assert "(was 'GitHub MCP')" in done.out
    assert "REMOTE_AUTHORIZATION" in done.out
    assert done.out.rstrip().endswith("next: remit upstream check")
    assert TOKEN not in done.out + done.err


def test_vs_code_writes_comments_inputs_and_another_key(shell: Shell) -> None:
    text = """\
    {
      // settings of the editor
      "mcp": { /* here */
        "inputs": [
          {"id": "key", "type": "promptString", "description": "the // key", "password": true},
          {"id": "unused", "type": "promptString"},
        ],
        "servers": {
          "a": {"type": "stdio", "command": "x",
                "env": {"K": "${input:key}", "P": "${env:my_var}"}},
          "b": {"url": "https://b.example/mcp", "headers": {"X": "${B_TOKEN}",},},
        },
      },
      "editor.fontSize": 12,
    }
    """
    report = shell.json("upstream", "import", host(shell, text, "settings.json"))
    assert servers(shell)["a"].secret_env == {"K": "A_K", "P": "MY_VAR"}
    assert servers(shell)["b"].secret_headers == {"X": "B_TOKEN"}
    assert {one["name"]: one["was"] for one in report["secrets"]}["A_K"] == (
        "${input:key}, asked for as 'the // key'"
    )
    assert report["notes"] == ["the input 'unused' is used by no server that was taken over"]


def test_of_the_projects_of_claude_code_the_one_where_one_stands_counts(shell: Shell) -> None:
    content = {
        "mcpServers": {"everywhere": {"command": "a"}},
        "projects": {
            str(shell.folder): {"mcpServers": {"here": {"command": "b"}}, "history": [1]},
            "/elsewhere": {"mcpServers": {"there": {"command": "c"}}},
            "/empty": {"mcpServers": {}},
        },
    }
    report = shell.json("upstream", "import", host(shell, content, ".claude.json"))
    assert sorted(servers(shell)) == ["everywhere", "here"]
    (note,) = report["notes"]
    assert "/elsewhere" in note


def test_what_is_not_understood_is_told_and_never_dropped_in_silence(shell: Shell) -> None:
    content = {
        "mcpServers": {
            "a": {
                "command": "./x",
                "alwaysAllow": ["y"],
                "timeout": 5000,
                "envFile": ".env",
                "headers": {"A": "b"},
                "env": {"GONE": None},
            },
            "off": {"command": "x", "disabled": True},
            "also-off": {"command": "x", "enabled": False},
            "remit": {"command": "/usr/bin/remit", "args": ["mcp", "--profile", "observer"]},
            "us": {"command": "python3", "args": ["-P", "-m", "remit", "mcp"]},
        }
    }
    report = shell.json("upstream", "import", host(shell, content))
    (one,) = report["servers"]
    told = " ".join(one["notes"])
    for word in ("'alwaysAllow'", "'timeout'", "'envFile'", "'headers'", "GONE", "cwd"):
        assert word in told
    assert [one["source"] for one in report["skipped"]] == ["also-off", "off", "remit", "us"]
    assert list(servers(shell)) == ["a"]


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ({"type": "sse", "url": "https://x.example/sse"}, "SSE"),
        ({"type": "websocket", "url": "https://x.example/"}, "websocket"),
        ({"type": "http", "command": "x"}, "'http'"),
        ({"command": "x", "url": "https://x.example/"}, "either"),
        ({}, "either"),
        ("text", "not an object"),
        (None, "not an object"),
        ({"command": ["x"]}, "command is not text"),
        ({"command": ""}, "command"),
        ({"command": "npx -y x"}, "single word"),
        ({"command": "x", "args": "y"}, "not a list"),
        ({"command": "x", "args": [["y"]]}, "argument 1"),
        ({"command": "x", "args": ["--api-key", "abc"]}, "argument 2 looks like a secret"),
        ({"command": "x", "args": ["--token=abc"]}, "argument 1 looks like a secret"),
        ({"command": "x", "args": [TOKEN]}, "argument 1 looks like a secret"),
        ({"command": "x", "args": ["--header", "Authorization: Bearer abc"]}, "argument 2"),
        ({"command": "x", "args": ["${workspaceFolder}"]}, "only the host"),
        ({"command": "${HOME}/x"}, "only the host"),
        ({"command": "x", "cwd": "${workspaceFolder}"}, "only the host"),
        ({"command": "x", "cwd": "sub"}, "cwd"),
        ({"command": "x", "env": {"A": "${workspaceFolder}/b"}}, "only the host"),
        ({"command": "x", "env": {"A": "${command:pick}"}}, "only the host"),
        ({"command": "x", "env": ["A=b"]}, "env is not an object"),
        ({"command": "x", "env": {"A-B": "c"}}, "name of a variable"),
        ({"command": "x", "env": {"A": {"b": "c"}}}, "env A is not text"),
        ({"command": "x", "env": {"A": "b\0c"}}, "variable"),
        ({"command": "x", "args": ["a\0b"]}, "text"),
        ({"command": "x", "args": ["\ud800"]}, "proper text"),
        ({"url": "ftp://x.example/"}, "http"),
        ({"url": f"https://x.example/mcp?api_key={TOKEN}"}, "secret"),
        ({"url": f"https://me:{TOKEN}@x.example/"}, "secret"),
        ({"url": "https://${HOST}/mcp"}, "only the host"),
        ({"url": "https://x.example/", "headers": {"Host": "y"}}, "protocol"),
        ({"url": "https://x.example/", "headers": {"A": "b\r\nC: d"}}, "header"),
    ],
)
def test_one_server_that_cannot_be_taken_over_stops_all_of_them(
    shell: Shell, server: Any, told: str
) -> None:
    file = host(shell, {"mcpServers": {"good": {"command": "x"}, "bad": server}})
    report = shell.json("upstream", "import", file, code=1)
    (obstacle,) = report["obstacles"]
    assert obstacle["source"] == "bad"
    assert told in obstacle["message"]
    assert obstacle["hint"]
    assert TOKEN not in json.dumps(report)
    assert written(shell) == ""
    assert shell.json("upstream", "import", file, "--only", "good")["written"] is True
    assert list(servers(shell)) == ["good"]


def test_a_refusal_names_the_command_that_takes_the_others(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_SHOW_NEXT", "1")
    content = {
        "mcpServers": {"good one": {"command": "x"}, "bad": {"type": "sse", "url": "https://x/"}}
    }
    done = shell.run("upstream", "import", host(shell, content))
    assert done.code == 1
    assert done.out.rstrip().endswith("--only 'good one'")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "no object"),
        ("{}", "names no MCP servers"),
        ('{"mcpServers": []}', "not an object"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "stands twice"),
        ('{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {}}}', "two places"),
        ('{"mcpServers": {"a": NaN}}', "not JSON"),
        ('{"mcpServers": {"a\\ud800": {"type": "sse"}}}', "not JSON"),
        ('{"mcpServers": ' + "[" * 100_000, "nested"),
        ('{"a": "//", "mcpServers": /* {} }', "not JSON"),
        ('{"mcpServers": ' + "/* " * 300_000, "not JSON"),
        ('{"mcpServers": ' + ", " * 300_000, "not JSON"),
    ],
)
def test_a_file_that_is_none_of_a_host_is_told(shell: Shell, text: str, told: str) -> None:
    done = shell.run("upstream", "import", host(shell, text))
    assert done.code == 2
    assert told in done.err
    assert written(shell) == ""


def test_a_file_without_servers_writes_nothing(shell: Shell) -> None:
    assert shell.run("upstream", "import", host(shell, {"mcpServers": {}})).code == 1
    assert shell.run("upstream", "import", "nowhere.json").code == 2
    assert written(shell) == ""


def test_text_between_quotes_is_never_taken_for_a_comment(shell: Shell) -> None:
    content = {"mcpServers": {"a": {"command": "x", "args": ["//y", "/*", ",}", '\\"//', "*/"]}}}
    shell.json("upstream", "import", host(shell, content))
    assert servers(shell)["a"].args == ("//y", "/*", ",}", '\\"//', "*/")


def test_names_are_mapped_the_same_way_whatever_their_order() -> None:
    names = ["Time", "time", "TIME!", "a.b", "a b", "9lives", "日本", "_x", "a" * 40, "x-", "ok_1"]
    mapped = server_names(names)
    assert mapped == server_names(reversed(names))
    assert len(set(mapped.values())) == len(names)
    assert (mapped["time"], mapped["ok_1"], mapped["9lives"]) == ("time", "ok_1", "server-9lives")
    assert {mapped["Time"], mapped["TIME!"]} == {"time-2", "time-3"}
    assert len(mapped["a" * 40]) == 32


def test_an_entry_that_is_there_is_not_overwritten_unless_that_is_meant(shell: Shell) -> None:
    shell.write("home/upstreams.yaml", "# mine\nupstreams:\n  good:\n    command: old # keep\n")
    before = written(shell)
    file = host(shell, {"mcpServers": {"good": {"command": "new"}, "other": {"command": "x"}}})
    done = shell.run("upstream", "import", file)
    assert (done.code, written(shell)) == (1, before)
    assert "--replace" in done.err
    assert shell.run("upstream", "import", file, "--replace").code == 0
    assert {name: one.command for name, one in servers(shell).items()} == {
        "good": "new",
        "other": "x",
    }
    assert written(shell).startswith("# mine\n")


def test_a_dry_run_writes_nothing(shell: Shell) -> None:
    report = shell.json("upstream", "import", host(shell, CLAUDE), "--dry-run")
    assert (report["written"], written(shell)) == (False, "")
    assert len(report["servers"]) == 2


def test_trust_is_given_to_all_of_them(shell: Shell) -> None:
    shell.json("upstream", "import", host(shell, CLAUDE), "--trust", "on_first_use")
    assert {one.trust for one in servers(shell).values()} == {"on_first_use"}


def test_two_secrets_never_share_a_name(shell: Shell) -> None:
    shell.write(
        "home/upstreams.yaml", "upstreams: {old: {command: x, env: {K: {secret: A_B_KEY}}}}\n"
    )
    content = {
        "mcpServers": {
            "a-b": {"command": "x", "env": {"KEY": "one"}},
            "a": {"command": "x", "env": {"B_KEY": "two", "C": "${A_KEY}"}},
            "c": {"url": "https://x.example/", "headers": {"X-Key": "three", "X.Key": "four"}},
        }
    }
    report = shell.json("upstream", "import", host(shell, content))
    names = [one["name"] for one in report["secrets"]]
    assert len(set(names)) == len(names) == 5
    assert "A_B_KEY" not in names
    assert servers(shell)["a"].secret_env["C"] == "A_KEY"


def test_a_default_of_a_reference_is_not_written_down(shell: Shell) -> None:
    content = {"mcpServers": {"a": {"command": "x", "env": {"K": f"${{K:-{TOKEN}}}"}}}}
    report = shell.json("upstream", "import", host(shell, content))
    assert servers(shell)["a"].secret_env == {"K": "K"}
    assert "without its default" in report["secrets"][0]["was"]
    assert TOKEN not in written(shell) + json.dumps(report)


def test_what_stands_around_a_reference_is_not_shown_when_it_looks_secret(shell: Shell) -> None:
    content = {"mcpServers": {"a": {"command": "x", "env": {"K": f"{TOKEN}${{X}}"}}}}
    report = shell.json("upstream", "import", host(shell, content))
    assert report["secrets"][0]["was"] == "put together: ${X}"
    assert TOKEN not in written(shell) + json.dumps(report)


def test_only_names_a_server_by_either_name(shell: Shell) -> None:
    file = host(shell, CLAUDE)
    for name in ("GitHub MCP", "github-mcp"):
        report = shell.json("upstream", "import", file, "--dry-run", "--only", name)
        assert [one["name"] for one in report["servers"]] == ["github-mcp"]
    done = shell.run("upstream", "import", file, "--only", "remot")
    assert done.code == 2
    assert "did you mean 'remote'?" in done.err


def test_a_disk_that_is_full_leaves_the_old_file(shell: Shell) -> None:
    home = shell.folder / "home"
    home.write_text("no folder")
    done = shell.run("upstream", "import", host(shell, CLAUDE))
    assert done.code == 2
    assert home.read_text() == "no folder"
    assert Path(home).is_file()
