"""mcp-config and claude-args: what is pasted into a host works, and holds no secret."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.cli.shell import Shell

HOSTS = ["claude-code", "claude-desktop", "vscode", "cursor"]
URL = "http://127.0.0.1:7421/mcp"
TEXT = {"type": "string", "minLength": 1}
COMMAND = {"command": TEXT, "args": {"type": "array", "items": TEXT}}


def _exact(fields: dict[str, Any]) -> dict[str, Any]:
    """A schema for an object with exactly these fields."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _file(key: str, entry: dict[str, Any], **more: Any) -> dict[str, Any]:
    return _exact({key: _exact({"remit": _exact(entry)}), **more})


def _asking(url: str, token: str, **more: Any) -> dict[str, Any]:
    header = _exact({"Authorization": {"const": f"Bearer {token}"}})
    return {"url": {"const": url}, "headers": header, **more}


STDIO = {
    "claude-code": _file("mcpServers", COMMAND),
    "claude-desktop": _file("mcpServers", COMMAND),
    "vscode": _file("servers", {"type": {"const": "stdio"}, **COMMAND}),
    "cursor": _file("mcpServers", {"type": {"const": "stdio"}, **COMMAND}),
}
QUESTION = {
    "type": {"const": "promptString"},
    "id": {"const": "remit-token"},
    "description": TEXT,
    "password": {"const": True},
}
HTTP = {
    "claude-code": _file("mcpServers", _asking(URL, "${REMIT_TOKEN}", type={"const": "http"})),
    "vscode": _file(
        "servers",
        _asking(URL, "${input:remit-token}", type={"const": "http"}),
        inputs={"type": "array", "items": _exact(QUESTION), "minItems": 1, "maxItems": 1},
    ),
    "cursor": _file("mcpServers", _asking(URL, "${env:REMIT_TOKEN}")),
}


def _entry(config: dict[str, Any]) -> Any:
    (servers,) = [config[key] for key in ("servers", "mcpServers") if key in config]
    return servers["remit"]


@pytest.fixture(autouse=True)
def secrets(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Values around a command that must not come out of it."""
    found = ["tok-9f8a7b", "sk-secret-key"]
    monkeypatch.setenv("REMIT_TOKEN", found[0])
    key = shell.write("home/keys/helper.key", found[1])
    monkeypatch.setenv("REMIT_KEY", str(key))
    return found


# ---- mcp-config ----


@pytest.mark.parametrize("host", HOSTS)
def test_the_file_of_a_host_is_of_the_form_that_it_reads(
    shell: Shell, host: str, secrets: list[str]
) -> None:
    done = shell.run("mcp-config", "observer", "--host", host)
    assert done.code == 0
    config = json.loads(done.out)
    jsonschema_rs.validate(STDIO[host], config)
    command = [_entry(config)["command"], *_entry(config)["args"]]
    assert Path(command[0]).is_absolute()
    who = ["mcp", "--profile", "observer", "--home", str(shell.folder / "home")]
    assert command[-5:] == who
    assert not any(secret in done.out + done.err for secret in secrets)


@pytest.mark.parametrize("host", HTTP)
def test_over_http_the_file_names_who_holds_the_token_and_not_the_token(
    shell: Shell, host: str, secrets: list[str]
) -> None:
    done = shell.run("mcp-config", "observer", "--host", host, "--http", URL)
    assert done.code == 0
    jsonschema_rs.validate(HTTP[host], json.loads(done.out))
    assert not any(secret in done.out + done.err for secret in secrets)
    assert "remit key token" in done.err


def test_claude_desktop_has_no_way_over_http_and_says_what_to_do(shell: Shell) -> None:
    done = shell.run("mcp-config", "observer", "--host", "claude-desktop", "--http", URL)
    assert (done.code, done.out) == (2, "")
    assert "leave --http out" in done.err


def test_text_says_on_stderr_where_it_goes_and_how_to_go_on(shell: Shell) -> None:
    done = shell.run("mcp-config", "observer", "--host", "vscode")
    assert ".vscode/mcp.json" in done.err
    assert done.err.splitlines()[-1] == "next: remit tools observer"
    report = shell.json("mcp-config", "observer", "--host", "vscode")
    told = {"host": "vscode", "file": ".vscode/mcp.json", "config": json.loads(done.out)}
    assert report.pop("source")["kind"] == "files"
    assert report == told


def test_claude_code_is_meant_when_no_host_is_named(shell: Shell) -> None:
    assert shell.json("mcp-config", "observer")["host"] == "claude-code"


def test_the_usual_home_is_not_written_down(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMIT_HOME")
    config = shell.json("mcp-config", "observer")["config"]
    assert _entry(config)["args"][-3:] == ["mcp", "--profile", "observer"]


def test_a_home_is_written_down_from_the_root(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REMIT_HOME")
    config = shell.json("mcp-config", "observer", "--home", "here")["config"]
    assert _entry(config)["args"][-2:] == ["--home", str(shell.folder / "here")]


def test_the_command_is_the_one_on_the_path_else_this_python_without_the_folder(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(shell.folder))
    entry = _entry(shell.json("mcp-config", "observer")["config"])
    assert [entry["command"], *entry["args"][:4]] == [sys.executable, "-P", "-m", "remit", "mcp"]
    shell.write("remit", "#!/bin/sh\n").chmod(0o755)
    monkeypatch.setenv("PATH", os.curdir)
    entry = _entry(shell.json("mcp-config", "observer")["config"])
    assert [entry["command"], entry["args"][0]] == [str(shell.folder / "remit"), "mcp"]


def test_an_agent_is_served_by_its_key_in_the_home(shell: Shell, secrets: list[str]) -> None:
    done = shell.run("mcp-config", "--agent", "helper")
    args = _entry(json.loads(done.out))["args"]
    assert args[-5:-2] == ["mcp", "--agent", "helper"]
    assert not any(secret in done.out + done.err for secret in secrets)


@pytest.mark.parametrize("name", ["nobody", "../keys/helper", ""])
def test_an_agent_without_a_key_is_refused(shell: Shell, name: str) -> None:
    done = shell.run("mcp-config", "--agent", name)
    assert (done.code, done.out) == (2, "")
    assert "remit key new" in done.err


@pytest.mark.parametrize("words", [(), ("observer", "--agent", "helper")])
def test_one_subject_must_be_named(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell.run("mcp-config", *words).code == 2


def test_an_unknown_profile_is_answered_as_everywhere(shell: Shell) -> None:
    asked = shell.run("mcp-config", "obsever")
    assert asked.err == shell.run("tools", "obsever").err
    assert "did you mean 'observer'?" in asked.err
    assert asked.code == 2


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("127.0.0.1:7421", id="no-scheme"),
        pytest.param("ftp://here/mcp", id="another-scheme"),
        pytest.param("http:///mcp", id="no-host"),
        pytest.param("http://here:99999/mcp", id="no-such-port"),
        pytest.param("http://[::1/mcp", id="half-a-bracket"),
        pytest.param("https://me:tok-9f8a7b@here/mcp", id="a-password"),
        pytest.param("https://here/mcp?token=tok-9f8a7b", id="a-token"),
        pytest.param("https://here/mcp#x", id="a-fragment"),
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(shell: Shell, url: str) -> None:
    done = shell.run("mcp-config", "observer", "--http", url)
    assert (done.code, done.out) == (2, "")
    assert "tok-9f8a7b" not in done.err


def test_an_address_without_a_path_is_completed(shell: Shell) -> None:
    config = shell.json("mcp-config", "observer", "--http", "https://here.example")["config"]
    assert _entry(config)["url"] == "https://here.example/mcp"


# ---- claude-args ----


def test_arguments_for_the_claude_command_line(shell: Shell, contract: tuple[str, ...]) -> None:
    report = shell.json("claude-args", "reviewer", *contract)
    arguments = report["arguments"]
    *pairs, strict = arguments
    assert strict == "--strict-mcp-config"  # no other server, whatever files the host finds
    options = dict(zip(pairs[::2], pairs[1::2], strict=True))
    assert options["--tools"] == ""  # nothing of the host's own is held
    assert "mcp__remit__state_get" in options["--allowedTools"].split(",")
    assert "mcp__remit__state_delete" not in options["--allowedTools"]
    assert options["--disallowedTools"] == "Bash"
    config = json.loads(options["--mcp-config"])
    assert config == shell.json("mcp-config", "reviewer", *contract)["config"]
    assert shlex.split(shell.run("claude-args", "reviewer", *contract).out) == arguments


def test_a_tool_under_review_is_not_among_the_arguments(shell: Shell) -> None:
    arguments = shell.json("claude-args", "orchestrator")["arguments"]
    own = arguments[arguments.index("--tools") + 1].split(",")
    assert "TodoWrite" in own
    assert set(own) == set(shell.json("resolve", "orchestrator")["allowed_claude_tools"])
    assert "WebFetch" not in " ".join(arguments)


@pytest.mark.parametrize("profile", ["observer", "executor", "administrator"])
def test_the_allowed_tools_are_those_that_a_host_is_shown(shell: Shell, profile: str) -> None:
    arguments = shell.json("claude-args", profile)["arguments"]
    allowed = arguments[arguments.index("--allowedTools") + 1].split(",")
    listed = {tool["name"] for tool in shell.json("tools", profile)["tools"]}
    served = {name.removeprefix("mcp__remit__") for name in allowed if name.startswith("mcp__")}
    assert served == listed


def test_where_a_host_is_shown_less_the_tool_that_calls_the_rest_is_allowed(shell: Shell) -> None:
    shell.write("own/capabilities.yaml", "version: 1\ncapabilities: {}\n")
    lists = 'additional_tools: ["state:get", "discovery:discover"]\n'
    shell.write("own/compositions/some.yaml", f"name: some\nexposure: discovered\n{lists}")
    own = ("--catalogue", str(shell.folder / "own" / "capabilities.yaml"))
    allowed = shell.json("claude-args", "some", *own)["arguments"][1].split(",")
    assert {"mcp__remit__discover_capabilities", "mcp__remit__call_capability"} <= set(allowed)
