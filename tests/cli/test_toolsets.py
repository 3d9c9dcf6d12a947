"""tools: a profile as a model sees it, as a list and in the shapes of its interfaces."""

import shutil
from typing import Any

import pytest
from mcp_types import ListToolsResult
from tests.cli.shell import Shell

from remit.config.definitions.files import starter_dir
from remit.features.tools.formats import formatted

PUSHED = {"message:direct", "permission:changed"}
"""Seen and never called, so no tools."""
UNEXPOSED = {
    *("audit:entry", "audit:query", "audit:verify"),
    *("awareness:outcomes", "awareness:stopped", "awareness:switch"),
    *("awareness:put", "awareness:refresh", "awareness:remove"),
    *("config:changed", "config:plan", "config:rejected", "config:reload"),
    *("discovery:examples", "discovery:forget"),
    *("key:add", "key:list", "key:revoke"),
    *("key:token", "key:tokens", "key:revoke_token"),
    *("review:decide", "review:list", "review:requested"),
    *("upstream:check", "upstream:refresh"),
}
"""What capabilities with `mcp_tools: false` give the administrator."""
FINDING = {
    "agent:runtime",
    *("awareness:cards", "awareness:inject", "awareness:read", "awareness:select"),
    *("discovery:describe", "discovery:discover", "discovery:stats", "discovery:tools"),
    *("skill:list", "skill:read", "bill:query"),
}
"""What everybody has and no list shows: hosts call it for a turn, before there is one."""


def test_tools_carry_schemas_and_a_token_bill(shell: Shell) -> None:
    report = shell.json("tools", "observer")
    assert set(report) == {"tools", "tokens", "revision", "source"}
    assert set(report["tokens"]) == {"sent", "full_dump"}
    tool = next(tool for tool in report["tools"] if tool["event"] == "state:get")
    assert set(tool) >= {"name", "event", "description", "input_schema"}
    assert tool["name"] == "state_get"
    assert tool["input_schema"]["required"] == ["key"]
    granted = shell.json("resolve", "observer")["allowed_events"]
    hidden = {"permission:changed", *FINDING}  # the first is seen and never called
    *tools, search = report["tools"]
    assert [tool["event"] for tool in tools] == [e for e in granted if e not in hidden]
    assert (search["name"], search["event"]) == ("discover_capabilities", "discovery:discover")
    assert report["tokens"]["sent"] == report["tokens"]["full_dump"]


def test_a_thin_list_has_no_schemas_and_costs_less(shell: Shell) -> None:
    thin = shell.json("tools", "observer", "--thin")
    assert all(set(tool) == {"name", "event", "description"} for tool in thin["tools"])
    assert thin["tokens"]["sent"] < thin["tokens"]["full_dump"]
    text = shell.run("tools", "observer", "--thin").out
    assert "state_get" in text
    assert "tokens" in text


def test_what_is_not_exposed_is_granted_and_not_listed(shell: Shell) -> None:
    listed = {tool["event"] for tool in shell.json("tools", "administrator", "--full")["tools"]}
    granted = set(shell.json("resolve", "administrator")["allowed_events"])
    assert granted - listed == {*UNEXPOSED, *PUSHED}
    assert listed <= granted
    assert {"message:publish", "state:set"} <= listed


# ---- --format ----

DEFERRING = """\
name: gardener
extends: executor
exposure: discovered
pinned: [state:get]
"""
ANTHROPIC = {"name", "description", "input_schema"}
OPENAI = {"type", "name", "description", "parameters", "strict"}


def _definitions(shell: Shell, text: str) -> tuple[str, ...]:
    """The options for the shipped definitions with one more profile."""
    shutil.copytree(starter_dir() / "compositions", shell.folder / "own" / "compositions")
    shutil.copy(starter_dir() / "capabilities.yaml", shell.folder / "own")
    shell.write("own/compositions/gardener.yaml", text)
    return ("--catalogue", str(shell.folder / "own" / "capabilities.yaml"))


def _names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


@pytest.mark.parametrize(("form", "keys"), [("anthropic", ANTHROPIC), ("openai", OPENAI)])
def test_ready_definitions_hold_what_the_interface_knows_and_nothing_else(
    shell: Shell, form: str, keys: set[str]
) -> None:
    ready = shell.json("tools", "observer", "--format", form)["tools"]
    assert all(set(tool) == keys for tool in ready)
    listed = shell.json("tools", "observer", "--full")["tools"]
    assert _names(ready) == _names(listed)
    schemas = [tool.get("input_schema") or tool["parameters"] for tool in ready]
    assert all(schema["type"] == "object" and "properties" in schema for schema in schemas)
    assert schemas == [{"properties": {}, **tool["input_schema"]} for tool in listed]


def test_the_ready_list_for_mcp_is_a_result_of_tools_list(shell: Shell) -> None:
    result = ListToolsResult.model_validate(shell.json("tools", "executor", "--format", "mcp"))
    tools = {tool.name: tool for tool in result.tools}
    assert set(tools) == {tool["name"] for tool in shell.json("tools", "executor")["tools"]}
    annotations = tools["state_get"].annotations
    assert annotations is not None
    assert annotations.read_only_hint is True
    assert tools["state_get"].input_schema["required"] == ["key"]


@pytest.mark.parametrize("form", ["anthropic", "openai"])
def test_with_defer_the_model_sees_the_search_first_and_nothing_but_that(
    shell: Shell, form: str
) -> None:
    search, *rest = shell.json("tools", "observer", "--format", form, "--defer")["tools"]
    assert "defer_loading" not in search
    assert all(tool["defer_loading"] is True for tool in rest)
    assert _names(rest) == _names(shell.json("tools", "observer", "--full")["tools"])


def test_the_search_is_run_by_the_client_of_either_interface(shell: Shell) -> None:
    first = {
        form: shell.json("tools", "observer", "--format", form, "--defer")["tools"][0]
        for form in ("anthropic", "openai")
    }
    assert set(first["anthropic"]) == ANTHROPIC
    assert first["anthropic"]["name"] == "discover_capabilities"
    assert set(first["openai"]) == {"type", "execution", "description", "parameters"}
    assert (first["openai"]["type"], first["openai"]["execution"]) == ("tool_search", "client")
    assert first["openai"]["parameters"] == first["anthropic"]["input_schema"]


@pytest.mark.parametrize("exposure", ["discovered", "turn"])
def test_a_profile_that_shows_less_defers_all_but_what_it_pins(shell: Shell, exposure: str) -> None:
    own = _definitions(shell, DEFERRING.replace("discovered", exposure))
    _, *tools = shell.json("tools", "gardener", "--format", "anthropic", *own)["tools"]
    assert [tool["name"] for tool in tools if "defer_loading" not in tool] == ["state_get"]
    assert len(tools) > 10
    # MCP has no deferring: its server lists less instead.
    mcp = shell.json("tools", "gardener", "--format", "mcp", *own)["tools"]
    calling = ["call_capability"] if exposure == "discovered" else []
    assert _names(mcp) == ["state_get", "discover_capabilities", *calling]
    whole = shell.json("tools", "gardener", "--format", "mcp", "--full", *own)["tools"]
    assert _names(whole) == _names(tools)


@pytest.mark.parametrize("exposure", ["discovered", "turn"])
def test_tools_shows_and_counts_what_a_host_is_shown(shell: Shell, exposure: str) -> None:
    own = _definitions(shell, DEFERRING.replace("discovered", exposure))
    report = shell.json("tools", "gardener", *own)
    mcp = shell.json("tools", "gardener", "--format", "mcp", *own)["tools"]
    assert _names(report["tools"]) == _names(mcp)
    assert report["exposure"] == exposure
    whole = shell.json("tools", "gardener", "--full", *own)
    assert len(whole["tools"]) > 10
    assert report["tokens"]["sent"] < whole["tokens"]["sent"] / 5
    assert report["tokens"]["full_dump"] == whole["tokens"]["full_dump"] >= whole["tokens"]["sent"]
    thin = shell.json("tools", "gardener", "--thin", *own)
    assert _names(thin["tools"]) == _names(mcp)
    assert thin["tokens"]["sent"] < report["tokens"]["sent"]
    assert "--full" in shell.run("tools", "gardener", *own).out


def test_nothing_is_deferred_for_who_may_not_search(shell: Shell) -> None:
    own = _definitions(shell, DEFERRING + 'disallowed_tools: ["discovery:*"]\n')
    tools = shell.json("tools", "gardener", "--format", "openai", *own)["tools"]
    assert {tool["type"] for tool in tools} == {"function"}
    assert not any("defer_loading" in tool for tool in tools)
    done = shell.run("tools", "gardener", "--format", "openai", "--defer", *own)
    assert done.code == 2
    assert "may not search" in done.err


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--defer",), id="defer-without-a-format"),
        pytest.param(("--defer", "--format", "mcp"), id="mcp-knows-no-deferring"),
        pytest.param(("--thin", "--format", "openai"), id="no-schemas"),
        pytest.param(("--format", "gemini"), id="another-vendor"),
    ],
)
def test_formats_that_cannot_be_are_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell.run("tools", "observer", *words).code == 2


# ---- what a search answers ----


def _ask(shell: Shell, form: str, *more: str) -> Any:
    words = ("read a value of the shared state", "--as", "gardener")
    return shell.json("discover", *words, "--format", form, *more)


def test_a_search_refers_to_deferred_tools_of_the_request_and_no_others(shell: Shell) -> None:
    own = _definitions(shell, DEFERRING.replace("[state:get]", "[state:list]"))
    _, *tools = shell.json("tools", "gardener", "--format", "anthropic", *own)["tools"]
    deferred = {tool["name"] for tool in tools if "defer_loading" in tool}
    answer = _ask(shell, "anthropic", *own)
    assert answer["type"] == "tool_result"
    assert answer["content"][0] == {"type": "tool_reference", "tool_name": "state_get"}
    assert all(set(block) == {"type", "tool_name"} for block in answer["content"])
    assert {block["tool_name"] for block in answer["content"]} <= deferred


def test_a_search_brings_the_definitions_where_the_interface_wants_them(shell: Shell) -> None:
    own = _definitions(shell, DEFERRING.replace("[state:get]", "[state:list]"))
    answer = _ask(shell, "openai", *own)
    head = (answer["type"], answer["execution"], answer["status"])
    assert head == ("tool_search_output", "client", "completed")
    listed = shell.json("tools", "gardener", "--format", "openai", *own)["tools"]
    assert answer["tools"][0]["name"] == "state_get"
    assert all(tool in listed for tool in answer["tools"])


def test_a_search_that_finds_nothing_new_says_so(shell: Shell) -> None:
    own = _definitions(shell, DEFERRING)
    (block,) = _ask(shell, "anthropic", "--top", "1", *own)["content"]
    assert block["type"] == "text"
    assert _ask(shell, "openai", "--top", "1", *own)["tools"] == []


def test_a_skill_does_not_take_the_place_of_a_tool(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "read a value of the shared state"
    shell.write("skills/value/SKILL.md", f"---\nname: value\ndescription: {text}\n---\n{text}\n")
    monkeypatch.setenv("REMIT_CAPABILITY_DIRS", str(shell.folder / "skills"))
    words = ("discover", text, "--as", "observer", "--top", "1")
    assert shell.json(*words)["capabilities"][0]["kind"] == "skill"
    (tool,) = shell.json(*words, "--format", "openai")["tools"]
    assert tool["name"] == "state_get"


@pytest.mark.parametrize("words", [("--kind", "skill"), ("--full",)])
def test_a_search_for_other_things_has_no_such_answer(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.run("discover", "x", "--as", "observer", "--format", "openai", *words)
    assert done.code == 2


def test_a_schema_is_cut_to_what_vendors_take_and_the_tool_to_search_with_has_no_double() -> None:
    odd = {
        "name": "odd",
        "event": "mcp:odd:odd",
        "description": "Takes either.",
        "input_schema": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "$defs": {}},
    }
    (tool,) = formatted([odd], "anthropic")
    assert tool["input_schema"] == {"type": "object", "properties": {}, "$defs": {}}
    double = odd | {"name": "discover_capabilities"}
    names = [tool["name"] for tool in formatted([odd, double], "anthropic", defer=True)]
    assert names == ["discover_capabilities", "odd"]
