"""Old names still work, and everybody who uses one is told: in the answer, and once in the log."""

import json

import pytest
from tests.acceptance.site import Daemon, Site
from tests.acceptance.test_http import client
from tests.acceptance.test_mcp import ERAS, host

from remit_client.errors import Denied
from remit_client.sync import Client

PLUGIN = """from remit.kernel.dispatch.registry import event_handler


@event_handler("booth:open", effect="read", capability="booth", aliases=["booth:unlock"])
def open_() -> str:
    "Open."
    return "open"


@event_handler(
    "booth:peek", effect="read", capability="booth", aliases=["booth:look"], inline=True
)
def peek() -> str:
    "Look."
    return "seen"
"""
BOOTH = "  booth: {description: A booth, aliases: [stall], requires: [catalogue_read]}\n"


@pytest.fixture
def booth(site: Site) -> Site:
    site.add_module("plugin", PLUGIN)
    site.configure(handlers=["plugin"], log_format="json")
    with site.catalogue.open("a", encoding="utf-8") as file:
        file.write(BOOTH)
    site.add_profile("keeper", "capabilities: [booth]\n")
    return site


def logged(daemon: Daemon) -> list[tuple[str, str, str]]:
    lines = [json.loads(line) for line in daemon.log().splitlines() if "old_name_used" in line]
    return [(line["principal"], line["kind"], line["old"]) for line in lines]


def warned(client: Client, event: str, data: object = None) -> list[str]:
    answer = client.ask(event, data)
    assert answer.ok
    assert {one["code"] for one in answer.warnings} <= {"old_name"}
    return [f"{one['message']}; {one['hint']}" for one in answer.warnings]


def test_who_uses_an_old_name_is_told_each_time_and_the_log_once(booth: Site) -> None:
    with booth.serving() as daemon, daemon.client("ann", "keeper") as ann:
        open_ = ["'booth:unlock' is an old name of the event 'booth:open'; write 'booth:open'"]
        assert [warned(ann, "booth:unlock") for _ in range(3)] == [open_] * 3
        assert warned(ann, "booth:look") == [
            "'booth:look' is an old name of the event 'booth:peek'; write 'booth:peek'"
        ]
        assert warned(ann, "booth:open") == warned(ann, "booth:peek") == []
        assert warned(ann, "capability:get", {"id": "stall"}) == [
            "'stall' is an old name of the capability 'booth'; write 'booth'"
        ]
        assert warned(ann, "capability:get", {"id": "booth"}) == []
        assert warned(ann, "self/tool", {"name": "tool:booth:look"}) != []
        assert logged(daemon) == [
            ("ann", "event", "booth:unlock"),
            ("ann", "event", "booth:look"),
            ("ann", "capability", "stall"),
        ]
        with daemon.client("bob", "minimal") as bob, pytest.raises(Denied):
            bob.call("booth:unlock")
        assert "bob" not in {principal for principal, *_ in logged(daemon)}


def test_an_agent_that_is_given_an_old_name_is_no_secret(booth: Site) -> None:
    with booth.serving() as daemon, daemon.operator() as operator:
        data = {"capabilities": {"stall": True}, "disallowed_tools": ["booth:look"]}
        answer = operator.ask("agent:spawn", {"profile": "minimal", **data})
        told = [one for one in answer.data["warnings"] if one["code"] == "old_name"]
        assert [one.get("capability", one.get("tool")) for one in told] == ["stall", "booth:look"]
        assert [one["code"] for one in answer.warnings] == ["old_name"]


def test_the_command_line_warns_and_answers_all_the_same(booth: Site) -> None:
    with booth.serving():
        done = booth.run("call", "booth:unlock")
        assert (done.returncode, json.loads(done.stdout)) == (0, "open")
        assert "warning: 'booth:unlock' is an old name" in done.stderr


def test_over_http_a_header_tells_it(booth: Site) -> None:
    booth.configure(handlers=["plugin"], http="127.0.0.1:0")
    with booth.serving() as daemon, client(daemon) as http:
        old = http.post("/v1/events/booth:unlock", json={})
        assert (old.status_code, old.json()) == (200, "open")
        wanted = "old_name; 'booth:unlock' is an old name of the event 'booth:open'"
        assert old.headers["Remit-Warning"] == wanted
        assert "Remit-Warning" not in http.post("/v1/events/booth:open", json={}).headers


@pytest.mark.parametrize("era", ERAS)
async def test_over_mcp_the_result_tells_it(booth: Site, era: str) -> None:
    booth.add_profile("keeper", "capabilities: [booth, discovery]\nexposure: discovered\n")
    with booth.serving():
        booth.answer("key", "new", "ann", "--profile", "keeper")
        async with host(booth, era, "--agent", "ann") as asking:
            call = {"name": "booth:unlock", "arguments": {}}
            found = await asking.call_tool("call_capability", call)
            assert not found.is_error
            assert [one["code"] for one in (found.meta or {})["remit/warnings"]] == ["old_name"]
            now = await asking.call_tool("call_capability", call | {"name": "booth:open"})
            assert "remit/warnings" not in (now.meta or {})
