"""Agents on a real daemon: spawned, talking, cut off, and there again after a restart."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site, eventually

import remit_client
import remit_client.sync
from remit_client.keys import Key


@contextmanager
def connected(daemon: Daemon, spawned: dict[str, Any]) -> Generator[remit_client.sync.Client]:
    credentials = spawned["credentials"]
    key = Key(spawned["agent_id"], credentials["public_key"], credentials["secret_key"])
    with remit_client.sync.connect(home=daemon.home, key=key) as client:
        yield client


def test_a_coordinator_spawns_a_helper_that_works_until_it_is_ended(site: Site) -> None:
    with site.serving() as daemon, daemon.client("carl", "coordinator") as carl:
        spawned = carl.call("agent:spawn", {"profile": "executor", "agent_id": "helper"})
        assert spawned["parent"] == "carl"
        with connected(daemon, spawned) as helper:
            helper.call("state:set", {"key": "a", "value": 1})
            with pytest.raises(remit_client.Denied):
                helper.call("agent:spawn", {})
            ended = carl.call("agent:terminate", {"agent_id": "helper"})
            assert ended["terminated"] == ["helper"]
            with pytest.raises(remit_client.RemitError):
                helper.call("state:get", {"key": "a"})


def test_agents_and_their_mail_survive_a_restart(site: Site) -> None:
    with site.serving() as daemon, daemon.operator() as operator:
        spawned = operator.call("agent:spawn", {"profile": "communicator", "agent_id": "ann"})
        sent = operator.call("agent:send_message", {"agent_id": "ann", "message": "hello"})
        assert sent == {"delivered": 0, "kept": True}
        before = operator.call("agent:list")
    with site.serving() as daemon, daemon.operator() as operator:
        assert operator.call("agent:list") == before

        def status() -> dict[str, Any]:
            found: dict[str, Any] = operator.call("agent:status", {"agent_id": "ann"})
            return found

        assert status()["use"]["waiting_messages"] == 1
        with connected(daemon, spawned) as ann:
            with ann.subscribe("message:*") as events:
                got = next(iter(events))
            assert (got.event, got.data) == (
                "message:direct",
                {"from": "operator", "message": "hello"},
            )
            eventually(status, lambda seen: seen["use"]["waiting_messages"] == 0)
