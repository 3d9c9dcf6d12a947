"""Approvals and reviews with a real daemon, real clients and the commands."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site, eventually

import remit_client.sync
from remit_client.errors import Denied, RemitError
from remit_client.keys import Key

GATED = "capabilities: [state_write, network_access]\napproval_required: [state:delete]\n"
DELETE = {"key": "a"}


def connect(daemon: Daemon, key: Key) -> AbstractContextManager[remit_client.sync.Client]:
    return remit_client.sync.connect(home=daemon.home, key=key)


def pending(client: remit_client.sync.Client) -> str:
    with pytest.raises(RemitError) as caught:
        client.call("state:delete", DELETE)
    assert caught.value.code == "approval_pending", caught.value
    return str(caught.value.details["review"])


def test_a_call_waits_for_the_operator_over_a_restart(site: Site) -> None:
    site.add_profile("gated", GATED)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon:
        key = daemon.new_key("ann", "gated")
        with connect(daemon, key) as ann:
            ann.call("state:set", {"key": "a", "value": 1})
            review = pending(ann)
    with site.serving() as daemon, connect(daemon, key) as ann:
        assert pending(ann) == review
        listed = site.run("review", "list").stdout
        assert review in listed
        assert 'state:delete {"key":"a"' in listed
        approved = site.run("review", "approve", review, "--note", "go on")
        assert approved.returncode == 0, approved.stderr
        ann.call("state:delete", DELETE)
        assert site.run("review", "approve", review).returncode == 1
        again = pending(ann)
        assert again != review
        site.answer("review", "reject", again, "--note", "not again")
        with pytest.raises(Denied) as caught:
            ann.call("state:delete", DELETE)
        assert caught.value.details["note"] == "not again"
        with pytest.raises(Denied):
            ann.call("review:decide", {"id": again, "decision": "approve"})
        assert site.answer("audit", "verify")["ok"]


def test_a_waiting_call_goes_on_when_it_is_approved(site: Site) -> None:
    site.add_profile("gated", GATED)
    with site.serving() as daemon:
        with daemon.operator() as operator:
            operator.call("state:set", {"key": "a", "value": 1})
        key = daemon.new_key("ann", "gated")
        with (
            connect(daemon, key) as ann,
            daemon.operator() as operator,
            ThreadPoolExecutor() as pool,
        ):
            waiting = pool.submit(ann.call, "state:delete", DELETE)
            items = eventually(
                lambda: operator.call("review:list", {"kind": "approval"})["items"],
                lambda found: len(found) == 1,
            )
            operator.call("review:decide", {"id": items[0]["id"], "decision": "approve"})
            assert waiting.result(PATIENCE) == {"key": "a", "deleted": True}


def test_a_capability_is_approved_taken_back_and_asked_for_again_when_it_changes(
    site: Site,
) -> None:
    site.add_profile("gated", GATED)
    with site.serving() as daemon:
        waiting = {item["id"] for item in site.answer("review", "list")["items"]}
        assert "gated/network_access" in waiting
        approved = site.answer("review", "approve", "gated", "network_access")
        assert approved["claude_tools"] == ["WebFetch", "WebSearch"]
        done = site.run("review", "reject", "gated/network_access", "--note", "no")
        assert "gated does not get" in done.stdout
        site.answer("review", "approve", "gated/network_access")
    with site.serving() as daemon:
        assert "gated/network_access" not in ids(site, "pending")
        text = site.catalogue.read_text(encoding="utf-8")
        site.catalogue.write_text(text.replace("WebSearch]", "WebSearch, Bash]"), encoding="utf-8")
        daemon.reload()
        eventually(lambda: ids(site, "pending"), lambda found: "gated/network_access" in found)


def ids(site: Site, status: str) -> list[str]:
    items = site.answer("review", "list", "--status", status)["items"]
    return [item["id"] for item in items]


def test_a_demand_for_approval_that_matches_nothing_is_an_error(site: Site) -> None:
    site.add_profile("gated", "capabilities: [state_write]\napproval_required: [state:delte]\n")
    done = site.run("check", "--json")
    assert done.returncode == 2
    codes = [error["code"] for error in json.loads(done.stdout)["errors"]]
    assert codes == ["dead_approval"]
