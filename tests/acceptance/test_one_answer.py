"""One computation answers every surface: commands, events, plans and the audit never disagree."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site

import remit_client.sync
from remit_client.errors import Denied
from remit_client.keys import Key

CATALOGUE = """
version: 1
capabilities:
  base:
    description: What everybody has
    event_patterns: [system:health, system:discover, "permission:*"]
    always_included: true
  hull_build: {description: Build hulls, event_patterns: [state:get]}
  hull_admin:
    description: Run the yard
    event_patterns: [state:set]
    requires: [hull_build]
    security_review_required: true
  ledger_admin: {description: Keep the books, event_patterns: [state:delete]}
  cargo: {description: Move cargo, event_patterns: [state:list, state:delete]}
  old_cargo: {description: As it was, event_patterns: [state:list], status: retired}
  soon: {description: Later, event_patterns: [todo:write_todos], status: coming_soon}
  wild: {description: All of the state, event_patterns: ["agent:*"]}
  network_access:
    description: Reach the outside world
    event_patterns: [web:web_fetch]
    claude_tools: [WebFetch]
    security_review_required: true
"""
PROFILES = {
    "yard": "capabilities: [hull_admin]\n",
    "night": (
        "variables: {shift: {type: string, default: day, allowed_values: [day, night]}}\n"
        "components:\n"
        "  - {name: capabilities, inline: {cargo: true}}\n"
        "  - {name: tool_overrides, when: {shift: night},"
        " inline: {disallowed_tools: [state:delete]}}\n"
    ),
    "plain": "capabilities: [hull_build]\n",
    "boss": "capabilities: [cargo]\n",
    "master": "extends: boss\n",
    "tired": "capabilities: [old_cargo, soon]\n",
    "wildling": "capabilities: [wild]\n",
}


@pytest.fixture
def yard(site: Site) -> Site:
    """A site with a yard instead of the starter."""
    shutil.rmtree(site.compositions)
    site.compositions.mkdir()
    site.catalogue.write_text(CATALOGUE, encoding="utf-8")
    for name, text in PROFILES.items():
        site.add_profile(name, text)
    return site


def copy_of(site: Site, name: str = "copy") -> Path:
    """A copy of the definitions, to be edited."""
    folder = site.folder / name
    folder.mkdir()
    shutil.copy(site.catalogue, folder / "capabilities.yaml")
    shutil.copytree(site.compositions, folder / "compositions")
    return folder


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def holds(site: Site, subject: str, event: str) -> bool:
    found: bool = json.loads(site.run("can", subject, event, "--json").stdout)["allowed"]
    return found


def changed_row(daemon: Daemon) -> dict[str, Any]:
    """The newest row of the audit about the configuration."""
    with daemon.operator() as operator:
        found = operator.call("audit:query", {"event": "config:changed"})["items"][0]
    row: dict[str, Any] = found
    return row


def test_a_plan_after_an_approval_says_what_apply_then_does(yard: Site) -> None:
    with yard.serving() as daemon:
        daemon.new_key("sam", "yard")
        yard.answer("review", "approve", "yard", "hull_admin")
        same = yard.answer("plan", "--to", str(copy_of(yard, "same")))
        assert (same["profiles"], same["agents"]) == ({}, {})
        folder = copy_of(yard)
        edit(
            folder / "capabilities.yaml",
            "{description: Build hulls, event_patterns: [state:get]}",
            "{description: Build hulls, event_patterns: [state:get], requires: [ledger_admin]}",
        )
        plan = yard.answer("plan", "--to", str(folder))
        # The approval was for less: what the profile held through it waits for a new one.
        assert plan["profiles"]["yard"]["revoked"] == ["state:get", "state:set"]
        assert plan["profiles"]["yard"]["review_added"] == ["hull_admin"]
        assert plan["profiles"]["plain"]["granted"] == ["state:delete"]
        assert plan["agents"]["sam"]["revoked"] == ["state:get", "state:set"]
        done = yard.answer("apply", str(folder), "--yes")
        assert done["profiles"] == plan["profiles"]
        assert not holds(yard, "yard", "state:delete")
        assert not holds(yard, "sam", "state:set")
        assert holds(yard, "plain", "state:delete")
        row = changed_row(daemon)["details"]
        assert row["summary"] == plan["summary"]
        assert row["agents"] == ["sam"]


def test_a_plan_names_the_agent_whose_variables_make_the_difference(yard: Site) -> None:
    with yard.serving() as daemon:
        with daemon.operator() as operator:
            data = {"profile": "night", "agent_id": "ned", "variables": {"shift": "night"}}
            operator.call("agent:spawn", data)
        assert not holds(yard, "ned", "state:delete")
        folder = copy_of(yard)
        edit(folder / "compositions" / "night.yaml", "disallowed_tools: [state:delete]", "")
        plan = yard.answer("plan", "--to", str(folder))
        assert plan["profiles"] == {}
        assert plan["agents"]["ned"]["granted"] == ["state:delete"]
        assert plan["summary"]["agents_widened"] == 1
        yard.answer("apply", str(folder), "--yes")
        assert holds(yard, "ned", "state:delete")
        row = changed_row(daemon)["details"]
        assert row["granted"] == {"ned": ["state:delete"]}
        assert row["summary"]["agents_widened"] == 1


@pytest.mark.parametrize("running", [True, False])
def test_an_approved_pair_is_one_answer_on_every_surface(yard: Site, *, running: bool) -> None:
    with yard.serving() as daemon:
        daemon.new_key("sam", "yard")
        yard.answer("review", "approve", "yard", "hull_admin")
        if running:
            assert_approved(yard, "daemon")
    if not running:
        assert_approved(yard, "files")


def assert_approved(yard: Site, kind: str) -> None:
    assert yard.answer("can", "yard", "state:set")["source"]["kind"] == kind
    assert holds(yard, "sam", "state:set")
    found = yard.answer("who-can", "state:set")
    assert (found["profiles"], found["agents"]) == (["yard"], ["sam"])
    assert found["source"]["catalogue"] == str(yard.catalogue)
    assert "state:set" in yard.answer("resolve", "yard")["allowed_events"]
    assert yard.answer("resolve", "yard")["pending_review"] == []
    assert "state:set" in [tool["event"] for tool in yard.answer("tools", "yard")["tools"]]
    assert not [one for one in yard.answer("check")["warnings"] if one["code"] == "review_pending"]


def test_settings_that_name_other_files_than_the_daemons_are_an_error(yard: Site) -> None:
    other = copy_of(yard, "other")
    with yard.serving():
        edit(yard.folder / "remit.toml", '"capabilities.yaml"', '"other/capabilities.yaml"')
        for command in (
            ("can", "yard", "state:get"),
            ("why", "yard", "state:get"),
            ("who-can", "state:get"),
            ("resolve", "yard"),
            ("gives", "cargo"),
            ("tools", "yard"),
            ("check",),
            ("lint",),
            ("mcp-config", "yard"),
            ("claude-args", "yard"),
            ("plan",),
            ("reload",),
        ):
            done = yard.run(*command)
            assert done.returncode == 2, command
            assert "serves other definitions" in done.stderr, command
            assert "leave this folder" in done.stderr, command
            if command[0] not in ("plan", "reload"):  # the others can be asked about files by name
                assert "--catalogue" in done.stderr, command
        named = yard.answer(
            "can", "plain", "state:get", "--catalogue", str(other / "capabilities.yaml")
        )
        assert named["source"]["kind"] == "files"
        shown = yard.run("config", "--json")
        assert shown.returncode == 1, shown.stderr
        rows = {one["name"]: one for one in json.loads(shown.stdout)["settings"]}
        assert rows["catalogue"]["daemon"] == str(yard.catalogue)


def test_an_approval_covers_what_was_looked_at_and_nothing_that_grew_since(yard: Site) -> None:
    with yard.serving():
        yard.answer("review", "approve", "yard", "hull_admin")
        assert holds(yard, "yard", "state:set")
        edit(yard.catalogue, "Build hulls", "Build the hulls of ships")
        yard.answer("reload")
        assert holds(yard, "yard", "state:set")  # described otherwise, and no more than before
        edit(yard.catalogue, "event_patterns: [state:get]}", "event_patterns: []}")
        yard.answer("reload")
        assert holds(yard, "yard", "state:set")  # it gives less than before
        edit(
            yard.catalogue, "event_patterns: []}", "event_patterns: [state:get, todo:write_todos]}"
        )
        yard.answer("reload")
        assert not holds(yard, "yard", "state:set")
        assert not holds(yard, "yard", "todo:write_todos")
        waiting = yard.answer("review", "list")["items"]
        assert "yard/hull_admin" in [one["id"] for one in waiting]
        yard.answer("review", "approve", "yard", "hull_admin")
        assert holds(yard, "yard", "todo:write_todos")


def test_a_capability_of_one_agent_waits_is_listed_and_can_be_approved(yard: Site) -> None:
    with yard.serving() as daemon:
        with daemon.operator() as operator:
            data = {"profile": "plain", "agent_id": "web", "capabilities": ["network_access"]}
            made = operator.call("agent:spawn", data)
        (warning,) = made["warnings"]
        assert warning["code"] == "review_pending"
        assert "remit review approve web network_access" in warning["hint"]
        assert not holds(yard, "web", "web:web_fetch")
        why = json.loads(yard.run("why", "web", "web:web_fetch", "--json").stdout)
        assert why["reason"] == "review_pending"
        assert "review approve web network_access" in why["causes"][0]["hint"]
        (item,) = [i for i in yard.answer("review", "list")["items"] if i.get("agent") == "web"]
        assert (item["id"], item["grants"]) == ("agent:web/network_access", ["web:web_fetch"])
        yard.answer("review", "approve", "web", "network_access")
        assert holds(yard, "web", "web:web_fetch")
        assert not holds(yard, "plain", "web:web_fetch")  # the profile was not meant
    with yard.serving() as daemon:
        assert holds(yard, "web", "web:web_fetch")  # it is stored
        with daemon.operator() as operator:
            operator.call("agent:terminate", {"agent_id": "web"})
            operator.call("agent:spawn", data)
        assert not holds(yard, "web", "web:web_fetch")  # another one of that name was not meant


def test_spawning_tells_what_it_did_not_give(yard: Site) -> None:
    with yard.serving() as daemon, daemon.operator() as operator:
        made = operator.call(
            "agent:spawn", {"profile": "plain", "additional_tools": ["WebFetch", "state:gett"]}
        )
        told = {one["code"]: one["message"] for one in made["warnings"]}
        assert "'WebFetch'" in told["review_pending"]
        assert "'state:gett'" in told["dead_pattern"]


def test_an_agent_whose_profile_is_deleted_keeps_what_everybody_has_and_is_named(
    yard: Site,
) -> None:
    with yard.serving() as daemon:
        daemon.new_key("pat", "plain")
        (yard.compositions / "plain.yaml").unlink()
        plan = yard.answer("plan")
        assert plan["agents"]["pat"]["profile_removed"]
        assert plan["agents"]["pat"]["revoked"] == ["state:get"]
        (warning,) = [o for o in yard.answer("check")["warnings"] if o["code"] == "profile_in_use"]
        assert "pat" in warning["message"]
        yard.answer("reload")
        assert holds(yard, "pat", "system:health")
        why = json.loads(yard.run("why", "pat", "state:get", "--json").stdout)
        assert why["causes"][0]["code"] == "profile_removed"
        assert "'plain'" in why["causes"][0]["message"]


def test_who_gives_an_event_is_what_gives_says_from_the_other_side(yard: Site) -> None:
    with yard.serving() as daemon, daemon.operator() as operator:
        found = operator.call("capability:of_event", {"event": "state:list"})
        assert found["capabilities"] == ["cargo"]  # not the retired one
        found = operator.call("capability:of_event", {"event": "state:get"})
        assert found["capabilities"] == ["hull_admin", "hull_build"]


def test_why_begins_at_the_line_that_switches_a_capability_on(yard: Site) -> None:
    found = yard.answer("why", "master", "state:list")
    (rule,) = found["granted_by"]
    assert rule["path"] == ["master", "boss:2", "cargo"]
    assert "granted by master → boss:2 → cargo" in yard.run("why", "master", "state:list").stdout


@pytest.mark.parametrize(
    ("profile", "event", "code"),
    [
        ("tired", "state:list", "retired"),
        ("tired", "todo:write_todos", "coming_soon"),
        ("yard", "state:set", "review_pending"),
    ],
)
def test_why_names_the_cause(yard: Site, profile: str, event: str, code: str) -> None:
    found = json.loads(yard.run("why", profile, event, "--json").stdout)
    assert code in [cause["code"] for cause in found["causes"]]


def test_why_tells_of_a_wildcard_that_does_not_reach(site: Site) -> None:
    site.add_profile("star", 'additional_tools: ["config:*"]\n')
    found = json.loads(site.run("why", "star", "config:reload", "--json").stdout)
    (cause,) = found["causes"]
    assert (cause["code"], cause["line"]) == ("wildcard", 2)


def test_why_about_an_agent_names_archive_parent_and_session(yard: Site) -> None:
    with yard.serving() as daemon:
        with daemon.operator() as operator:
            operator.call("agent:spawn", {"profile": "boss", "agent_id": "old"})
            operator.call("session:open", {"session": "quiet", "disallowed_tools": ["state:list"]})
            operator.call(
                "agent:spawn", {"profile": "boss", "agent_id": "bound", "session": "quiet"}
            )
            operator.call("agent:update", {"agent_id": "old", "status": "archived"})
        old = json.loads(yard.run("why", "old", "state:list", "--json").stdout)
        assert [cause["code"] for cause in old["causes"]] == ["archived"]
        assert old["granted_by"] == []
        assert "granted by" not in yard.run("why", "old", "state:list").stdout
        bound = json.loads(yard.run("why", "bound", "state:list", "--json").stdout)
        assert (bound["session"], bound["causes"][0]["code"]) == ("quiet", "session")


def test_the_hint_of_a_denial_names_the_agent(yard: Site) -> None:
    with yard.serving() as daemon:
        data = {"profile": "boss", "agent_id": "shy", "disallowed_tools": ["state:list"]}
        with daemon.operator() as operator:
            credentials = operator.call("agent:spawn", data)["credentials"]
        server = (yard.home / "server.pub").read_text(encoding="utf-8").strip()
        key = Key("shy", credentials["public_key"], credentials["secret_key"], server)
        with (
            remit_client.sync.connect(home=yard.home, key=key) as shy,
            pytest.raises(Denied) as caught,
        ):
            shy.call("state:list")
        assert "remit why shy state:list" in caught.value.hint
        why = json.loads(yard.run("why", "shy", "state:list", "--json").stdout)
        assert (why["reason"], why["denied_by"][0]["file"]) == ("explicit_deny", "request")


def test_an_edit_between_two_runs_names_the_agents_that_it_widens(yard: Site) -> None:
    with yard.serving() as daemon, daemon.operator() as operator:
        data = {"profile": "night", "agent_id": "ned", "variables": {"shift": "night"}}
        operator.call("agent:spawn", data)
    edit(yard.compositions / "night.yaml", "disallowed_tools: [state:delete]", "")
    with yard.serving() as daemon:
        assert holds(yard, "ned", "state:delete")
        assert changed_row(daemon)["details"]["granted"] == {"ned": ["state:delete"]}
