"""Questions about those who are gone, and about those who never were."""

import json
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site

from remit_client import ApprovalPending, ExceedsParent, RemitError, UnknownAgent
from remit_client.keys import new_key
from remit_client.sync import Client

GONE = {"kid": "revoked", "carl": "revoked", "nobody": "unknown_agent"}


def part_with(daemon: Daemon) -> None:
    """An agent that is ended, and a client whose key is revoked."""
    daemon.new_key("carl", "observer")
    with daemon.operator() as operator:
        operator.call("agent:spawn", {"agent_id": "kid", "profile": "observer"})
        operator.call("agent:terminate", {"agent_id": "kid"})
        operator.call("key:revoke", {"name": "carl"})


def reasons(operator: Client, name: str) -> set[str]:
    """What every question about one agent gives as the reason."""
    data = {"event": "state:get", "agent": name}
    many = operator.call("permission:check_many", {"events": ["state:get"], "agent": name})
    answers = [
        operator.call("permission:check", data),
        operator.call("permission:explain", data),
        *many["results"],
    ]
    assert not any(one["allowed"] for one in answers)
    return {one["reason"] for one in answers}


def test_the_operator_is_told_who_was_revoked_and_who_never_was(site: Site) -> None:
    with site.serving() as daemon, daemon.operator() as operator:
        part_with(daemon)
        assert {name: reasons(operator, name) for name in GONE} == {
            name: {reason} for name, reason in GONE.items()
        }
    with site.serving() as daemon, daemon.operator() as operator:
        assert reasons(operator, "kid") == reasons(operator, "carl") == {"revoked"}
        operator.call("agent:spawn", {"agent_id": "kid", "profile": "observer"})
        data = {"event": "state:get", "agent": "kid"}
        assert operator.call("permission:check", data)["reason"] == "granted"


@pytest.fixture(scope="module")
def bereft(daemon: Daemon) -> Daemon:
    """A daemon that somebody has left."""
    part_with(daemon)
    return daemon


@pytest.mark.parametrize(("name", "reason"), GONE.items())
def test_can_and_why_say_so_and_end_with_one(bereft: Daemon, name: str, reason: str) -> None:
    site = bereft.site
    can = site.run("can", name, "state:get", "--json")
    assert (can.returncode, json.loads(can.stdout)["reason"]) == (1, reason)
    why = site.run("why", name, "state:get")
    assert why.returncode == 1
    assert reason in why.stdout
    assert f"({reason})" in site.run("can", name, "state:get").stdout


def test_can_suggests_what_was_probably_meant(daemon: Daemon) -> None:
    site = daemon.site
    done = site.run("can", "obsever", "state:get")
    assert done.returncode == 1
    assert "did you mean 'observer'?" in done.stderr
    assert site.run("can", "observer", "state:get").returncode == 0


def test_the_audit_tells_the_two_apart(site: Site) -> None:
    with site.serving() as daemon, daemon.operator() as operator:
        part_with(daemon)
        for name, reason in GONE.items():
            with pytest.raises(UnknownAgent) as caught:
                operator.call("agent:terminate", {"agent_id": name})
            assert caught.value.details == {"reason": reason}
        rows = site.answer("audit", "--outcome", "failed")["items"]
        assert [row["reason"] for row in reversed(rows)] == list(GONE.values())


def test_to_an_agent_all_of_them_are_the_same(site: Site) -> None:
    site.add_profile("asker", "capabilities: [spawn_agents, audit_read]\n")
    with site.serving() as daemon, daemon.client("ann", "asker") as ann:
        part_with(daemon)
        daemon.new_key("other", "observer")
        heard = set()
        for name in (*GONE, "other"):
            for event, data in (
                ("permission:check", {"event": "state:get", "agent": name}),
                ("permission:explain", {"event": "state:get", "agent": name}),
                ("agent:status", {"agent_id": name}),
            ):
                error = failure(ann, event, data)
                assert isinstance(error, UnknownAgent)
                heard.add((error.message.replace(name, "…"), error.hint, str(error.details)))
        assert len(heard) == 1


def test_failures_have_classes_of_their_own(site: Site) -> None:
    site.add_profile("gated", "capabilities: [spawn_agents]\napproval_required: [agent:list]\n")
    site.configure(approval_wait=0.01)
    with site.serving() as daemon, daemon.client("ann", "gated") as ann:
        pending = failure(ann, "agent:list", None)
        assert isinstance(pending, ApprovalPending)
        assert set(pending.details) == {"review", "event", "expires_at"}
        asked = {"public_key": new_key("x").public_key, "additional_tools": ["key:add"]}
        excess = failure(ann, "agent:spawn", asked)
        assert isinstance(excess, ExceedsParent)
        assert excess.details == {"excess": ["key:add"]}


def failure(client: Client, event: str, data: Any) -> RemitError:
    with pytest.raises(RemitError) as caught:
        client.call(event, data)
    return caught.value
