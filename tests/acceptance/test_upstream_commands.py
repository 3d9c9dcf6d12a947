"""Upstream servers beside a running daemon: added, checked, approved, used, taken out."""

import json
import sys

import pytest
from tests.acceptance.site import Daemon, Site
from tests.features.upstreams.client.clients import SERVERS

from remit_client.errors import RemitError

DUMP = {
    "protocol": "2025-11-25",
    "tools": [
        {"name": "get_tide", "description": "Tell the tide.", "inputSchema": {"type": "object"}},
    ],
}


@pytest.fixture
def watching(site: Site) -> Site:
    site.configure(watch=True, watch_debounce_ms=50)
    (site.folder / "dump.json").write_text(json.dumps(DUMP))
    return site


def add(daemon: Daemon, *options: str) -> dict[str, object]:
    server = (sys.executable, str(SERVERS / "from_dump.py"), str(daemon.site.folder / "dump.json"))
    found: dict[str, object] = daemon.site.answer("upstream", "add", "sea", *options, *server)
    return found


def test_a_server_is_added_checked_approved_called_and_removed(watching: Site) -> None:
    with watching.serving() as daemon:
        assert add(daemon)["in_force"] is True
        checked = watching.answer("upstream", "check")
        (server,) = checked["servers"]
        assert (server["found"], server["waiting"]) == (1, ["tool:sea/get_tide"])
        (item,) = watching.answer("upstream", "list")["items"]
        assert (item["state"], item["pending"]) == ("ready", 1)
        watching.answer("review", "list", "--kind", "tool")
        watching.answer("review", "approve", "tool:sea/get_tide")
        with daemon.operator() as operator:
            found = operator.call("mcp:sea:get_tide", {})
            assert "get_tide" in found["content"][0]["text"]
        assert watching.answer("can", "administrator", "mcp:sea:get_tide")["allowed"] is True
        assert "get_tide" in watching.run("upstream", "check").stdout
        assert watching.answer("upstream", "remove", "sea")["in_force"] is True
        assert watching.answer("upstream", "list")["items"] == []
        with daemon.operator() as operator, pytest.raises(RemitError) as caught:
            operator.call("mcp:sea:get_tide", {})
        assert caught.value.code == "unknown_event"


def test_an_imported_server_is_told_to_be_in_force(watching: Site) -> None:
    host = {"mcpServers": {"The Sea": {"command": "no-such-program", "env": {"TOKEN": "x"}}}}
    (watching.folder / ".mcp.json").write_text(json.dumps(host))
    with watching.serving():
        report = watching.answer("upstream", "import", ".mcp.json")
        assert (report["in_force"], report["servers"][0]["name"]) == (True, "the-sea")
        done = watching.run("upstream", "check", "--json")
        assert done.returncode == 1
        (server,) = json.loads(done.stdout)["servers"]
        assert "THE_SEA_TOKEN" in server["error"]
        done = watching.run("doctor", "--json", env={"THE_SEA_TOKEN": "only in this shell"})
        assert done.returncode == 1
        checks = json.loads(done.stdout)["checks"]
        (told,) = [one for one in checks if one["name"] == "upstreams"]
        assert (told["state"], told["repair"]) == ("broken", "remit upstream check the-sea")
        assert "THE_SEA_TOKEN" in told["message"]


def test_a_daemon_that_does_not_watch_is_told_apart(site: Site) -> None:
    (site.folder / "dump.json").write_text(json.dumps(DUMP))
    with site.serving() as daemon:
        report = add(daemon)
        assert report["in_force"] is False
        assert "remit reload" in str(report["message"])
        site.answer("reload")
        assert [one["name"] for one in site.answer("upstream", "list")["items"]] == ["sea"]


def test_commands_beside_a_daemon_mean_its_file(site: Site) -> None:
    site.configure(upstreams="mine.yaml", watch=True, watch_debounce_ms=50)
    (site.folder / "dump.json").write_text(json.dumps(DUMP))
    with site.serving() as daemon:
        site.configure(watch=True)  # nobody else has the setting any more
        report = add(daemon)
        assert report["file"] == str(site.folder / "mine.yaml")
        assert report["in_force"] is True
