"""The built-in capabilities on a real daemon: on the first day, without any configuration."""

import base64
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site

import remit_client
import remit_client.sync
from remit_client.keys import Key
from remit_client.sync import Client


@contextmanager
def connected(daemon: Daemon, spawned: dict[str, Any]) -> Generator[Client]:
    credentials = spawned["credentials"]
    key = Key(spawned["agent_id"], credentials["public_key"], credentials["secret_key"])
    with remit_client.sync.connect(home=daemon.home, key=key) as client:
        yield client


def names(client: Client, session: str | None = None) -> list[str]:
    listed = client.call("file:list_directory", session=session)
    return [entry["name"] for entry in listed["entries"]]


def test_an_executor_has_a_clock_a_task_list_and_files_under_their_own_names(
    daemon: Daemon,
) -> None:
    with daemon.client("ann", "executor") as ann:
        tools = ann.call("system:discover", {"level": "full", "format": "mcp"})["tools"]
        shown = {tool["name"] for tool in tools}
        files = {"read_file", "write_file", "list_directory", "grep_files", "delete_file"}
        assert {"get_current_time", "write_todos", "stat_file", *files} <= shown
        assert ann.call("time:get_current_time", {"format": "unix"})["timestamp"] > 1_700_000_000
        todos = [{"content": "Go", "activeForm": "Going", "status": "pending"}]
        written = ann.call("todo:write_todos", {"todos": todos})
        assert (written["todos"], len(written["warnings"])) == (todos, 1)
        with pytest.raises(remit_client.Denied):
            ann.call("math:add", {"a": 1, "b": 2})


def test_a_tester_calculates_and_looks_at_the_weather(daemon: Daemon) -> None:
    with daemon.client("tim", "tester") as tim:
        assert tim.call("math:divide", {"a": 1, "b": 4})["result"] == 0.25
        assert tim.call("weather:get_weather", {"city": "Oslo"})["is_mock"] is True
        with pytest.raises(remit_client.RemitError) as caught:
            tim.call("math:divide", {"a": 1, "b": 0})
        assert caught.value.code == "invalid_data"
        with pytest.raises(remit_client.RemitError) as caught:
            tim.call("math:add", {"a": float("inf"), "b": 0})
        assert caught.value.code == "invalid_data"


def test_what_is_announced_is_listed_and_given_to_nobody(daemon: Daemon) -> None:
    with daemon.operator() as operator:
        for name in ("research", "sandbox"):
            found = operator.call("capability:get", {"id": name})
            assert found["status"] == "coming_soon"
            assert found["events"] == []
        listed = operator.call("capability:list", {"limit": 1000})["items"]
        assert {"noop", "research", "sandbox", "test_math"} <= {one["id"] for one in listed}


def test_files_survive_a_restart_and_stay_with_their_session(site: Site) -> None:
    with site.serving() as daemon:
        key = daemon.new_key("ann", "executor")
        with remit_client.sync.connect(home=daemon.home, key=key) as ann:
            data = {"path": "/a/b.txt", "content": "hello\nworld\n"}
            assert ann.call("file:write_file", data, session="work")["created"] is True
    with site.serving() as daemon:
        with remit_client.sync.connect(home=daemon.home, key=key) as ann:
            found = ann.call("file:grep_files", {"pattern": "wor.d"}, session="work")
            assert found["matches"] == [{"path": "/a/b.txt", "line_number": 2, "line": "world"}]
            assert names(ann) == []
        with daemon.client("bob", "executor") as bob:
            assert names(bob, "work") == []
        with daemon.operator() as operator:
            operator.call("key:revoke", {"name": "ann"})
        with daemon.client("ann", "executor") as later:
            assert names(later, "work") == []


def test_a_child_that_was_spawned_into_a_session_shares_its_files(daemon: Daemon) -> None:
    with daemon.client("carl", "coordinator") as carl:
        carl.call("session:open", {"session": "work"})
        carl.call("file:write_file", {"path": "/task", "content": "count"}, session="work")
        spawn = {"profile": "executor", "agent_id": "inside", "session": "work"}
        with connected(daemon, carl.call("agent:spawn", spawn)) as inside:
            assert inside.call("file:read_file", {"path": "/task"})["content"] == "count"
            inside.call("file:write_file", {"path": "/result", "content": "3"})
        assert names(carl, "work") == ["result", "task"]
        spawn = {"profile": "executor", "agent_id": "outside"}
        with connected(daemon, carl.call("agent:spawn", spawn)) as outside:
            assert names(outside) == names(outside, "work") == []
        carl.call("session:close", {"session": "work"})
        carl.call("session:open", {"session": "work"})
        assert names(carl, "work") == []


def test_no_path_of_the_machine_is_reached(daemon: Daemon) -> None:
    site = daemon.site
    with daemon.client("eve", "executor") as eve:
        for path in ("/etc/passwd", str(site.home / "remit.db")):
            with pytest.raises(remit_client.RemitError) as caught:
                eve.call("file:read_file", {"path": path})
            assert caught.value.code == "not_found"
        target = site.folder / "written"
        eve.call("file:write_file", {"path": str(target), "content": "x"})
        assert not target.exists()
        for path in ("/../etc/passwd", f"/..{site.home}/remit.db", "etc/passwd", "/a/../../b"):
            with pytest.raises(remit_client.RemitError) as caught:
                eve.call("file:write_file", {"path": path, "content": "x"})
            assert caught.value.code == "invalid_data"


def test_limits_are_those_of_the_settings(site: Site) -> None:
    site.configure(file_size_limit=10, file_count_limit=1, file_total_limit=10)
    with site.serving() as daemon, daemon.client("ann", "executor") as ann:
        with pytest.raises(remit_client.RemitError) as caught:
            ann.call("file:write_file", {"path": "/a", "content": "x" * 11})
        assert caught.value.code == "too_large"
        ann.call("file:write_file", {"path": "/a", "content": "x" * 10})
        with pytest.raises(remit_client.RemitError) as caught:
            ann.call("file:write_file", {"path": "/b", "content": ""})
        assert caught.value.code == "limit_exceeded"


def test_ten_thousand_tasks_are_refused_and_the_connection_goes_on(daemon: Daemon) -> None:
    todos = [{"content": "Go", "activeForm": "Going", "status": "pending"}] * 10_000
    with daemon.client("tom", "executor") as tom:
        with pytest.raises(remit_client.RemitError) as caught:
            tom.call("todo:write_todos", {"todos": todos})
        assert caught.value.code == "too_large"
        assert tom.call("todo:write_todos", {"todos": []})["counts"]["total"] == 0


def test_a_largest_file_of_any_bytes_can_be_written_and_read_back(daemon: Daemon) -> None:
    content = base64.b64encode(bytes(range(256)) * 2048).decode()
    data = {"path": "/large", "content": content, "encoding": "base64"}
    with daemon.client("lou", "executor") as lou:
        assert lou.call("file:write_file", data)["size_bytes"] == 524_288
        assert lou.call("file:read_file", {"path": "/large"})["content"] == content
