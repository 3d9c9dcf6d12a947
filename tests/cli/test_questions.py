"""check, resolve, can, why, who-can, gives: the shapes of the contract, on its own examples."""

from tests.cli.contract import EVENTS
from tests.cli.shell import Shell

MULTI = "base_multi_agent"


def source(shell: Shell) -> dict[str, object]:
    """What answers about the contract's own files were computed from."""
    return {
        "kind": "files",
        "revision": 1,
        "catalogue": str(shell.folder / "contract/capabilities.yaml"),
        "compositions": str(shell.folder / "contract/compositions"),
        "home": "",
        "beside_daemon": False,
    }


def test_check_counts_what_it_found_fine(shell: Shell, contract: tuple[str, ...]) -> None:
    report = shell.json("check", *contract)
    assert report == {
        "ok": True,
        "errors": [],
        "warnings": [],
        "counts": {"capabilities": 6, "profiles": 4, "events": len(EVENTS)},
        "source": source(shell),
    }
    assert "fine: 6 capabilities, 4 profiles, " in shell.run("check", *contract).out


def test_check_tells_every_mistake_at_once_with_place_caret_and_hint(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    shell.write("contract/compositions/one.yaml", "name: one\ncapabilities: {state_raed: true}\n")
    shell.write("contract/compositions/two.yaml", "name: two\nextends: on\nlimit: {}\n")
    done = shell.run("check", *contract)
    assert done.code == 2
    lines = done.err.splitlines()
    place = "contract/compositions/one.yaml:2:16: "
    at = next(number for number, line in enumerate(lines) if line.startswith(place))
    assert lines[at].endswith("[unknown_capability]")
    assert lines[at + 1] == "    capabilities: {state_raed: true}"
    assert lines[at + 2] == "                   ^^^^^^^^^^"
    assert lines[at + 3] == "    hint: did you mean 'state_read'?"
    assert any(line.startswith("contract/compositions/two.yaml:2:10: ") for line in lines)
    assert any(line.startswith("contract/compositions/two.yaml:3:1: ") for line in lines)
    report = shell.json("check", *contract, code=2)
    assert report["ok"] is False
    assert len(report["errors"]) == 3
    assert set(report["errors"][0]) == {"file", "line", "column", "code", "message", "hint"}


def test_resolve_tells_what_a_profile_grants(shell: Shell, contract: tuple[str, ...]) -> None:
    report = shell.json("resolve", MULTI, *contract)
    expected = {
        "profile": MULTI,
        "revision": 1,
        "capabilities": ["agent_messaging", "base", "spawn_agents", "state_read", "state_write"],
        "allowed_events": [
            "agent:list",
            "agent:send_message",
            "agent:spawn",
            "agent:status",
            "conversation:active",
            "custom:event",
            "message:publish",
            "message:subscribe",
            "message:subscriptions",
            "message:unsubscribe",
            "state:delete",
            "state:get",
            "state:list",
            "state:set",
            "system:discover",
            "system:health",
            "system:help",
        ],
        "denied_events": ["agent:terminate"],
        "allowed_claude_tools": [],
        "limits": {"max_children": 5, "max_depth": 2},
        "pending_review": [],
    }
    assert {key: report[key] for key in expected} == expected
    assert isinstance(report["warnings"], list)
    text = shell.run("resolve", MULTI, *contract).out
    assert "denied: agent:terminate" in text
    assert "max_children 5" in text


def test_resolve_tells_which_tools_are_listed_at_once(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    report = shell.json("resolve", MULTI, *contract)
    assert (report["exposure"], report["pinned"]) == ("all", [])
    path = shell.write("mine/capabilities.yaml", "version: 1\ncapabilities: {}\n")
    text = "name: p\nadditional_tools: ['state:*', discovery:discover]\nexposure: turn\n"
    shell.write("mine/compositions/p.yaml", f"{text}pinned: ['state:s*', state:get]\n")
    report = shell.json("resolve", "p", "--catalogue", str(path))
    assert (report["exposure"], report["pinned"]) == ("turn", ["state:get", "state:set"])
    text = shell.run("resolve", "p", "--catalogue", str(path)).out
    assert "  exposure: turn" in text
    assert "  always listed: state:get, state:set" in text
    reading = shell.json("resolve", "p", "--max-effect", "read", "--catalogue", str(path))
    assert (reading["exposure"], reading["pinned"]) == ("turn", ["state:get"])


def test_resolve_takes_variables_and_an_effect(shell: Shell, contract: tuple[str, ...]) -> None:
    report = shell.json("resolve", "reviewer", "--var", "team=docs", *contract)
    assert report["prompt"] == "You review the work of team docs."
    assert report["limits"] == {"max_calls_per_minute": 60, "max_concurrent": 1}
    assert "agent:spawn" not in report["allowed_events"]
    assert "state:delete" in report["denied_events"]
    wrong = shell.run("resolve", "reviewer", "--var", "team=sales", *contract)
    assert wrong.code == 2
    assert "core" in wrong.err
    assert shell.run("resolve", "reviewer", "--var", "team", *contract).code == 2
    reading = shell.json("resolve", "executor", "--max-effect", "read")
    assert "state:set" not in reading["allowed_events"]
    assert "state:get" in reading["allowed_events"]


def test_a_profile_that_only_reads_is_one_answer_in_every_command(shell: Shell) -> None:
    catalogue = shell.write(
        "mine/capabilities.yaml",
        "capabilities: {all: {description: d, event_patterns: ['state:*'], claude_tools: [Bash]}}",
    )
    shell.write("mine/compositions/free.yaml", "name: free\ncapabilities: [all]\n")
    shell.write("mine/compositions/p.yaml", "name: p\ncapabilities: [all]\nmax_effect: read\n")
    named = ("--catalogue", str(catalogue))
    found = shell.json("resolve", "p", *named)
    assert (found["allowed_events"], found["max_effect"]) == (["state:get", "state:list"], "read")
    assert (found["allowed_claude_tools"], found["denied_events"]) == (
        [],
        ["state:delete", "state:set"],
    )
    assert "max_effect" not in shell.json("resolve", "free", *named)
    assert "  max effect: read" in shell.run("resolve", "p", *named).out
    why = shell.json("why", "p", "state:set", *named, code=1)
    (rule,) = why["denied_by"]
    assert (why["reason"], rule["pattern"]) == ("explicit_deny", "max_effect: read")
    assert (rule["file"], rule["line"], rule["column"]) == ("mine/compositions/p.yaml", 3, 13)
    (cause,) = why["causes"]
    assert (cause["code"], "its effect is write" in cause["message"]) == ("max_effect", True)
    assert shell.json("can", "p", "state:set", *named, code=1)["reason"] == "explicit_deny"
    assert shell.json("who-can", "state:set", *named)["profiles"] == ["free"]
    assert [t["event"] for t in shell.json("tools", "p", *named)["tools"]] == found[
        "allowed_events"
    ]
    asked = shell.json("resolve", "free", "--max-effect", "read", *named)
    same = (
        "allowed_events",
        "denied_events",
        "allowed_claude_tools",
        "max_effect",
        "denied_claude_tools",
    )
    assert [asked[key] for key in same] == [found[key] for key in same]


def test_can_answers_by_its_exit_code(shell: Shell, contract: tuple[str, ...]) -> None:
    assert shell.json("can", MULTI, "state:get", *contract) == {
        "allowed": True,
        "reason": "granted",
        "subject": MULTI,
        "event": "state:get",
        "revision": 1,
        "source": source(shell),
    }
    assert shell.json("can", MULTI, "agent:terminate", *contract, code=1) == {
        "allowed": False,
        "reason": "explicit_deny",
        "subject": MULTI,
        "event": "agent:terminate",
        "revision": 1,
        "source": source(shell),
    }
    assert shell.json("can", MULTI, "audit:query", *contract, code=1)["reason"] == "no_grant"
    assert shell.json("can", MULTI, "no:such", *contract, code=1)["reason"] == "unknown_event"
    yes = shell.run("can", MULTI, "state:get", *contract)
    no = shell.run("can", MULTI, "audit:query", *contract)
    assert (yes.code, no.code) == (0, 1)
    assert yes.out.startswith(f"yes: {MULTI} may use state:get (granted)")
    assert no.out.startswith(f"no: {MULTI} may not use audit:query (no_grant)")


def test_why_shows_the_chain_of_requires_and_the_line(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    report = shell.json("why", MULTI, "state:get", *contract)
    assert (report["allowed"], report["reason"]) == (True, "granted")
    assert report["granted_by"] == [
        {
            "capability": "state_read",
            "path": [f"{MULTI}:6", "state_write", "state_read"],
            "pattern": "state:get",
            "file": "contract/capabilities.yaml",
            "line": 10,
            "column": 22,
        }
    ]
    assert report["denied_by"] == report["near_misses"] == []
    text = shell.run("why", MULTI, "state:get", *contract).out
    assert "granted by base_multi_agent:6 → state_write → state_read, pattern state:get" in text
    assert "contract/capabilities.yaml:10:22" in text


def test_why_shows_the_denial_and_what_would_have_granted(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    report = shell.json("why", MULTI, "agent:terminate", *contract, code=1)
    assert (report["allowed"], report["reason"]) == (False, "explicit_deny")
    (denial,) = report["denied_by"]
    assert (denial["pattern"], denial["line"]) == ("agent:terminate", 8)
    assert denial["file"] == f"contract/compositions/{MULTI}.yaml"
    assert [rule["capability"] for rule in report["granted_by"]] == ["spawn_agents"]
    text = shell.run("why", MULTI, "agent:terminate", *contract).out
    assert f"contract/compositions/{MULTI}.yaml:8:" in text


def test_why_names_near_misses(shell: Shell, contract: tuple[str, ...]) -> None:
    report = shell.json("why", MULTI, "state:gett", *contract, code=1)
    assert report["reason"] == "unknown_event"
    assert {"event": "state:get", "capability": "state_read"} in report["near_misses"]
    other = shell.json("why", "quiet", "state:get", *contract, code=1)
    assert {"event": "state:get", "capability": "state_read"} in other["near_misses"]
    assert (
        "near: state:get (held by state_read)"
        in shell.run("why", MULTI, "state:gett", *contract).out
    )


def test_who_can_lists_profiles(shell: Shell, contract: tuple[str, ...]) -> None:
    assert shell.json("who-can", "agent:terminate", *contract) == {
        "event": "agent:terminate",
        "profiles": ["base_multi_agent_explicit"],
        "agents": [],
        "source": source(shell),
    }
    assert "profiles: none" in shell.run("who-can", "audit:query", *contract).out


def test_gives_tells_everything_of_a_capability(shell: Shell, contract: tuple[str, ...]) -> None:
    report = shell.json("gives", "spawn_agents", *contract)
    expected = {
        "capability": "spawn_agents",
        "claude_tools": [],
        "requires": ["agent_messaging"],
        "limits": {"max_children": 5, "max_depth": 2},
    }
    assert {key: report[key] for key in expected} == expected
    assert {"agent:spawn", "message:publish"} <= set(report["events"])
    tools = shell.json("gives", "network_access", *contract)["claude_tools"]
    events = shell.json("gives", "network_access", *contract)["events"]
    assert events == ["web:web_fetch"], "a catalogue in which it has the event itself"
    assert tools == ["WebFetch", "WebSearch"]
    assert "requires: agent_messaging" in shell.run("gives", "spawn_agents", *contract).out
