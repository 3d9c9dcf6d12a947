"""tools and claude-args: a profile as a model and its host see it."""

import json
import shlex

from tests.cli.shell import Shell

PUSHED = {"message:direct", "permission:changed"}
"""Seen and never called, so no tools."""
UNEXPOSED = {
    *("audit:entry", "audit:query", "audit:verify"),
    *("awareness:outcomes", "awareness:stopped", "awareness:switch"),
    *("config:changed", "config:plan", "config:rejected", "config:reload"),
    *("discovery:examples", "discovery:forget"),
    *("key:add", "key:list", "key:revoke"),
    *("key:token", "key:tokens", "key:revoke_token"),
    *("review:decide", "review:list", "review:requested"),
}
"""What capabilities with `mcp_tools: false` give the administrator."""
FINDING = {
    "agent:runtime",
    *("awareness:cards", "awareness:inject", "awareness:select"),
    *("discovery:describe", "discovery:discover", "discovery:stats", "discovery:tools"),
}
"""What everybody has and no list shows: hosts call it for a turn, before there is one."""


def test_tools_carry_schemas_and_a_token_bill(shell: Shell) -> None:
    report = shell.json("tools", "observer")
    assert set(report) == {"tools", "tokens"}
    assert set(report["tokens"]) == {"sent", "full_dump"}
    tool = next(tool for tool in report["tools"] if tool["event"] == "state:get")
    assert set(tool) == {"name", "event", "description", "input_schema"}
    assert tool["name"] == "state_get"
    assert tool["input_schema"]["required"] == ["key"]
    granted = shell.json("resolve", "observer")["allowed_events"]
    hidden = {"permission:changed", *FINDING}  # the first is seen and never called
    assert [tool["event"] for tool in report["tools"]] == [e for e in granted if e not in hidden]


def test_a_thin_list_has_no_schemas_and_costs_less(shell: Shell) -> None:
    thin = shell.json("tools", "observer", "--thin")
    assert all(set(tool) == {"name", "event", "description"} for tool in thin["tools"])
    assert thin["tokens"]["sent"] < thin["tokens"]["full_dump"]
    text = shell.run("tools", "observer", "--thin").out
    assert "state_get" in text
    assert "tokens" in text


def test_what_is_not_exposed_is_granted_and_not_listed(shell: Shell) -> None:
    listed = {tool["event"] for tool in shell.json("tools", "administrator")["tools"]}
    granted = set(shell.json("resolve", "administrator")["allowed_events"])
    assert granted - listed == {*UNEXPOSED, *PUSHED}
    assert listed <= granted
    assert {"message:publish", "state:set"} <= listed


def test_arguments_for_the_claude_command_line(shell: Shell, contract: tuple[str, ...]) -> None:
    report = shell.json("claude-args", "reviewer", *contract)
    arguments = report["arguments"]
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert "mcp__remit__state_get" in options["--allowedTools"].split(",")
    assert "mcp__remit__state_delete" not in options["--allowedTools"]
    assert options["--disallowedTools"] == "Bash"
    config = json.loads(options["--mcp-config"])
    assert config["mcpServers"]["remit"]["args"] == ["mcp", "--profile", "reviewer"]
    assert shlex.split(shell.run("claude-args", "reviewer", *contract).out) == arguments


def test_a_tool_under_review_is_not_among_the_arguments(shell: Shell) -> None:
    arguments = shell.run("claude-args", "orchestrator").out
    assert "TodoWrite" in arguments
    assert "WebFetch" not in arguments
