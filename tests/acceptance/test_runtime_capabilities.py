"""Capabilities made in a running daemon, over the socket and over a restart."""

import pytest
from tests.acceptance.site import Site

from remit_client import Denied, RemitError

MAKER = "capabilities: [state_write, make_capabilities, spawn_agents]\n"
NOTES = {
    "id": "notes",
    "description": "Take notes together",
    "event_patterns": ["state:set"],
    "requires": ["state_read"],
    "system_prompt": "Keep notes under notes/.",
    "config_schema": {"type": "object", "properties": {"depth": {"type": "integer"}}},
}


def test_a_capability_is_made_given_and_still_there_after_a_restart(site: Site) -> None:
    site.add_profile("maker", MAKER)
    listed = [{"ref": "notes", "config": {"depth": 2}}, "current_time"]
    with site.serving() as daemon, daemon.client("ann", "maker") as ann:
        made = ann.call("capability:create", NOTES)
        with daemon.operator() as operator:
            operator.call("agent:spawn", {"agent_id": "bob", "capabilities": listed})
            found = operator.call("agent:runtime", {"agent_id": "bob"})
    with site.serving() as daemon, daemon.operator() as operator:
        assert operator.call("agent:runtime", {"agent_id": "bob"}) == found
        assert found["user_selected"] == ["notes", "current_time"]
        assert found["added_as_dependencies"] == ["state_read"]
        assert found["config"] == {"notes": {"depth": 2}}
        assert (
            '<capability id="notes">\nKeep notes under notes/.\n</capability>'
            in (found["system_prompt"])
        )
        got = operator.call("capability:get", {"id": "notes"})
        assert (got["origin"], got["events"]) == (
            "user:ann",
            ["state:get", "state:list", "state:set"],
        )
        assert got["versions"][0]["definition_hash"] == made["definition_hash"]
        operator.call("key:revoke", {"name": "ann"})
        status = operator.call("agent:status", {"agent_id": "bob"})
        assert not [event for event in status["allowed_events"] if event.startswith("state:")]


def test_making_one_is_audited_announced_and_undone_when_nobody_uses_it(site: Site) -> None:
    site.add_profile("maker", MAKER)
    with site.serving() as daemon, daemon.client("ann", "maker") as ann:
        made = ann.call("capability:create", NOTES)
        with pytest.raises(RemitError):
            ann.call("capability:create", NOTES | {"id": "more", "event_patterns": ["key:add"]})
        ann.call("capability:remove", {"id": "notes"})
        with daemon.operator() as operator:
            rows = operator.call("audit:query", {"event": "config:changed"})["items"]
            causes = [row["details"]["cause"] for row in rows]
            assert causes[:2] == ["capability_made", "capability_made"]
            assert rows[1]["principal"] == "ann"
            assert operator.call("system:health")["revision"] == made["revision"] + 1
        with pytest.raises(Denied):
            ann.call("config:reload")
