"""`remit why` names every cause that keeps an event from somebody, and a way out that works."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site, new_site
from tests.acceptance.upstream_site import Outside, ask, tool, waiting

import remit_client.sync

CAPABILITIES = """
  cargo_write: {description: x, event_patterns: [state:delete, state:set]}
  cargo_gated: {description: x, event_patterns: [state:set], security_review_required: true}
  cargo_old: {description: x, event_patterns: [state:set], status: retired}
  cargo_all: {description: x, event_patterns: [state:list], requires: [cargo_old]}
  vault: {description: x, security_review_required: true}
"""
PLUGIN = """from remit.kernel.dispatch.registry import event_handler


@event_handler("vault:open", capability="vault")
def open_() -> None:
    "Open."
"""


@pytest.fixture
def harbour(site: Site) -> Site:
    with site.catalogue.open("a", encoding="utf-8") as file:
        file.write(CAPABILITIES)
    site.add_profile("boss", "description: b\ncapabilities:\n  cargo_write: true\n")
    site.add_profile("master", "extends: boss\n")
    return site


def why(site: Site, *arguments: str) -> tuple[dict[str, Any], str]:
    """The answer for programs, and what is shown to people."""
    found = json.loads(site.run("why", *arguments, "--json").stdout)
    return found, site.run("why", *arguments).stdout


def codes(found: dict[str, Any]) -> list[str]:
    return [cause["code"] for cause in found["causes"]]


def test_a_path_begins_at_the_line_that_switched_the_capability_on(harbour: Site) -> None:
    found, shown = why(harbour, "master", "state:set")
    assert found["granted_by"][0]["path"] == ["master", "boss:4", "cargo_write"]
    assert "granted by master → boss:4 → cargo_write, pattern state:set" in shown


def test_the_way_out_is_the_narrowest_that_works_at_once(harbour: Site) -> None:
    found, shown = why(harbour, "minimal", "state:set")
    assert (found["repair"]["capability"], found["repair"]["review"]) == ("cargo_write", None)
    assert "    capabilities: {cargo_write: true}\n" in shown
    assert {miss["event"] for miss in found["near_misses"]} == {"state:set"}, "it exists"
    assert "near:" not in shown
    harbour.add_profile("minimal", "capabilities: {cargo_write: true}\n")
    assert harbour.run("can", "minimal", "state:set").returncode == 0


def test_a_way_out_that_needs_a_review_says_so(harbour: Site) -> None:
    harbour.add_module("plugin", PLUGIN)
    harbour.configure(handlers=["plugin"])
    found, shown = why(harbour, "minimal", "vault:open")
    assert (found["repair"]["capability"], found["repair"]["review"]) == ("vault", "minimal/vault")
    assert "review approve minimal/vault" in shown


def test_a_misspelt_event_is_told_with_the_line_for_what_was_meant(harbour: Site) -> None:
    found, shown = why(harbour, "minimal", "state:delet")
    assert found["reason"] == "unknown_event"
    assert "near: state:delete (held by cargo_write)" in shown
    assert "to allow it, add: capabilities: {cargo_write: true}" in shown


def test_what_is_required_and_grants_nothing_is_named(harbour: Site) -> None:
    harbour.add_profile("tired", "capabilities: [cargo_all]\n")
    found, _ = why(harbour, "tired", "state:set")
    assert codes(found) == ["retired"]
    assert "'cargo_old'" in found["causes"][0]["message"]


def test_the_limits_of_a_profile_are_told(harbour: Site) -> None:
    harbour.add_profile("slow", "extends: boss\nlimits: {max_calls_per_minute: 2}\n")
    found, shown = why(harbour, "slow", "state:set")
    assert found["limits"] == {"max_calls_per_minute": 2}
    assert "max_calls_per_minute 2" in shown


def test_a_limit_that_is_reached_is_a_cause(harbour: Site) -> None:
    harbour.add_profile("slow", "extends: boss\nlimits: {max_calls_per_minute: 2}\n")
    with harbour.serving() as daemon:
        with daemon.client("ann", "slow") as ann:
            ann.call("state:set", {"key": "a", "value": 1})
            assert codes(why(harbour, "ann", "state:set")[0]) == []
            ann.call("state:set", {"key": "a", "value": 1})
        found, shown = why(harbour, "ann", "state:set")
        assert (found["allowed"], codes(found)) == (True, ["limit"])
        assert "but it has reached its limit max_calls_per_minute, 2" in shown


def test_a_parent_is_named_beside_what_the_agent_lacks_itself(harbour: Site) -> None:
    harbour.add_profile("lead", "capabilities: [spawn_agents, state_read]\n")
    with harbour.serving() as daemon:
        key = daemon.new_key("lead", "lead")
        with remit_client.sync.connect(home=daemon.home, key=key) as lead:
            lead.call("agent:spawn", {"profile": "lead", "agent_id": "kid"})
        found, _ = why(harbour, "kid", "state:set")
        assert codes(found) == ["parent"]
        assert "'lead', which is above it, does not hold it" in found["causes"][0]["message"]
        assert found["repair"] is None, "a line in its profile would not be enough"


def test_an_archived_agent_is_told_one_thing(harbour: Site) -> None:
    with harbour.serving() as daemon:
        _spawn(daemon, profile="boss", agent_id="old")
        ask(daemon, "agent:update", agent_id="old", status="archived")
        found, shown = why(harbour, "old", "state:set")
        assert (codes(found), found["granted_by"]) == (["archived"], [])
        assert "granted by" not in shown
        assert "agent:update {agent_id: old, status: active}" in shown


def _spawn(daemon: Daemon, **data: Any) -> None:
    ask(daemon, "agent:spawn", **data)


@pytest.fixture
def outside() -> Iterator[Outside]:
    with new_site() as site:
        yield Outside(site)


def test_a_tool_in_quarantine_is_told_with_the_command_that_lets_it_in(outside: Outside) -> None:
    site = outside.site
    outside.add("north", tool("search_fish"), trust="review")
    with site.serving() as daemon:
        assert codes(why(site, "borrower", "mcp:north:search_fish")[0]) == ["not_offered"]
        ask(daemon, "upstream:check", name="north")
        found, shown = why(site, "borrower", "mcp:north:search_fish")
        assert (found["reason"], codes(found)) == ("unknown_event", ["quarantine"])
        assert "review approve 'tool:north/search_fish'" in shown
        assert found["near_misses"] == []
        assert codes(why(site, "borrower", "mcp:north:no_such")[0]) == ["not_offered"]
        assert codes(why(site, "borrower", "mcp:nowhere:x")[0]) == ["unknown_server"]
        assert set(waiting(daemon)) == {"tool:north/search_fish"}
        ask(daemon, "review:decide", id="tool:north/search_fish", decision="reject")
        assert codes(why(site, "borrower", "mcp:north:search_fish")[0]) == ["rejected"]
    assert codes(why(site, "borrower", "mcp:north:search_fish")[0]) == ["rejected"]
