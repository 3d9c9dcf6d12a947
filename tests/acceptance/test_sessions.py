"""Sessions on a real daemon: named by requests, binding agents, there again after a restart."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site

import remit_client
import remit_client.sync
from remit_client.keys import Key


@contextmanager
def connected(
    daemon: Daemon, spawned: dict[str, Any], session: str | None = None
) -> Generator[remit_client.sync.Client]:
    credentials = spawned["credentials"]
    key = Key(spawned["agent_id"], credentials["public_key"], credentials["secret_key"])
    with remit_client.sync.connect(home=daemon.home, key=key, session=session) as client:
        yield client


def write(client: remit_client.sync.Client, session: str | None = None) -> None:
    client.call("state:set", {"key": "a", "value": 1}, session=session)


def shown(client: remit_client.sync.Client) -> set[str]:
    listed = client.call("system:discover", {"level": "namespace"})["namespaces"].values()
    return {one["event"] for entries in listed for one in entries}


def test_a_session_narrows_those_who_name_it_and_binds_those_who_were_spawned_into_it(
    site: Site,
) -> None:
    with site.serving() as daemon, daemon.client("carl", "coordinator") as carl:
        left = carl.call("session:open", {"session": "review", "max_effect": "read"})
        assert "state:get" in left["allowed_events"]
        assert "state:set" not in left["allowed_events"]
        write(carl)
        with pytest.raises(remit_client.Denied) as caught:
            write(carl, "review")
        assert caught.value.details["session"] == "review"
        spawned = carl.call(
            "agent:spawn", {"profile": "executor", "agent_id": "helper", "session": "review"}
        )
        assert spawned["bound"] == ["review"]
        with connected(daemon, spawned) as helper:
            assert helper.call("state:get", {"key": "a"})["value"] == 1
            for session in (None, "review", "free"):
                with pytest.raises(remit_client.Denied):
                    write(helper, session)
            assert not helper.allowed("state:set")
            assert shown(helper) == set(spawned["allowed_events"])
            carl.call("session:close", {"session": "review"})
            with pytest.raises(remit_client.Denied):
                helper.call("system:health")


def test_a_connection_may_name_a_session_for_all_its_requests(site: Site) -> None:
    with site.serving() as daemon:
        key = daemon.new_key("carl", "coordinator")
        with remit_client.sync.connect(home=daemon.home, key=key) as carl:
            carl.call("session:open", {"session": "calm", "disallowed_tools": ["state:set"]})
        with remit_client.sync.connect(home=daemon.home, key=key, session="calm") as carl:
            assert not carl.allowed("state:set")
            assert "state:set" not in shown(carl)
            with pytest.raises(remit_client.Denied):
                write(carl)


async def test_an_asynchronous_connection_may_do_so_too(site: Site) -> None:
    with site.serving() as daemon:
        async with remit_client.connect(home=daemon.home, session="calm") as operator:
            await operator.call("session:open", {"session": "calm", "max_effect": "read"})
            assert not await operator.allowed("state:set")
            with pytest.raises(remit_client.Denied):
                await operator.call("state:set", {"key": "a", "value": 1})
            await operator.call("state:list", session="another")


def test_a_killed_daemon_comes_back_with_every_session_as_narrow_as_it_was(site: Site) -> None:
    daemon = site.start()
    key = daemon.new_key("carl", "coordinator")
    with remit_client.sync.connect(home=daemon.home, key=key) as carl:
        carl.call("session:open", {"session": "s"})
        spawned = carl.call(
            "agent:spawn", {"profile": "executor", "agent_id": "helper", "session": "s"}
        )
        carl.call("session:open", {"session": "over"})
        carl.call("session:close", {"session": "over"})
        carl.call("session:narrow", {"session": "s", "disallowed_tools": ["state:set"]})
    daemon.kill()
    with site.serving() as daemon:
        with remit_client.sync.connect(home=daemon.home, key=key) as carl:
            for session in ("s", "over"):
                with pytest.raises(remit_client.Denied):
                    write(carl, session)
            write(carl, "label")
        with connected(daemon, spawned) as helper, pytest.raises(remit_client.Denied):
            write(helper)


def test_the_command_line_shows_what_binds_an_agent_and_what_cuts_it(site: Site) -> None:
    with site.serving():
        site.answer("call", "session:open", "session=calm", "max_effect=read")
        spawned = site.answer("spawn", "executor", "--id", "ann", "--session", "calm")
        assert spawned["bound"] == ["calm"]
        (item,) = site.answer("agents")["items"]
        assert (item["session"], item["bound"]) == ("calm", ["calm"])
        why = site.run("why", "ann", "state:set", "--json")
        assert (why.returncode, json.loads(why.stdout)["session"]) == (1, "calm")
        assert "the session 'calm' takes it away" in site.run("why", "ann", "state:set").stdout
        assert site.run("can", "ann", "state:get").returncode == 0
        refused = site.run("call", "state:set", "key=a", "value=1", "--session", "calm")
        assert refused.returncode == 1
        assert "ann  executor  in calm" in site.run("agents").stdout
        label = site.run("spawn", "executor", "--id", "bob", "--session", "clam").stdout
        assert "it is a label" in label
