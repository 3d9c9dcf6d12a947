"""Approvals and reviews with a real daemon, real clients and the commands."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site, eventually

import remit_client.sync
from remit_client.errors import Denied, RemitError
from remit_client.keys import Key

GATED = "capabilities: [state_write, network_access]\napproval_required: [state:delete]\n"
DELETE = {"key": "a"}


def connect(daemon: Daemon, key: Key) -> AbstractContextManager[remit_client.sync.Client]:
    return remit_client.sync.connect(home=daemon.home, key=key)


def pending(
    client: remit_client.sync.Client,
    event: str = "state:delete",
    data: dict[str, Any] = DELETE,
    *,
    session: str | None = None,
) -> str:
    with pytest.raises(RemitError) as caught:
        client.call(event, data, session=session)
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
        assert 'state:delete  ann: {"key":"a"' in listed
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


IN_SESSIONS = "capabilities: [state_write, sessions]\napproval_required: [state:delete]\n"


def test_an_approval_counts_in_the_session_that_was_shown_and_in_no_other(site: Site) -> None:
    site.add_profile("gated", IN_SESSIONS)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon, connect(daemon, daemon.new_key("ann", "gated")) as ann:
        ann.call("state:set", {"key": "a", "value": 1})
        for name in ("scratch", "prod"):
            ann.call("session:open", {"session": name})
        reviews = {name: pending(ann, session=name) for name in ("scratch", "prod", None)}
        assert len(set(reviews.values())) == 3
        listed = site.run("review", "list", "--kind", "approval").stdout
        assert "in the session scratch" in listed
        shown = {one["id"]: one["session"] for one in site.answer("review", "list")["items"][-3:]}
        assert shown == {reviews["scratch"]: "scratch", reviews["prod"]: "prod", reviews[None]: ""}
        decided = site.run("review", "approve", reviews["scratch"]).stdout
        assert "in the session scratch" in decided
        for other in ("prod", None):
            assert pending(ann, session=other) == reviews[other]
        assert ann.call("state:delete", DELETE, session="scratch")["deleted"]


def test_an_approval_does_not_count_in_a_session_opened_anew_under_its_name(site: Site) -> None:
    site.add_profile("gated", IN_SESSIONS)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon, connect(daemon, daemon.new_key("ann", "gated")) as ann:
        ann.call("session:open", {"session": "job", "disallowed_tools": ["state:set"]})
        site.answer("review", "approve", pending(ann, session="job"))
        ann.call("session:close", {"session": "job"})
        ann.call("session:open", {"session": "job"})
        pending(ann, session="job")


SPAWNER = "capabilities: [spawn_agents, state_write]\napproval_required: [agent:spawn]\n"
SPAWN = {"profile": "worker", "capabilities": ["state_read"]}


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("compositions/worker.yaml", "[state_read]", "[state_write]"),
        ("compositions/parent.yaml", "{max_children: 1}", "{max_children: 2}"),
        ("capabilities.yaml", "[state:get, state:list]", "[state:get, state:list, state:set]"),
    ],
)
def test_an_approved_spawn_waits_again_when_what_it_names_was_edited(
    site: Site, file: str, before: str, after: str
) -> None:
    site.add_profile("parent", "limits: {max_children: 1}\n")
    site.add_profile("worker", "extends: parent\ncapabilities: [state_read]\n")
    site.add_profile("gated", SPAWNER)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon, connect(daemon, daemon.new_key("ann", "gated")) as ann:
        review = pending(ann, "agent:spawn", SPAWN)
        site.answer("review", "approve", review)
        path = site.folder / file
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text("# a comment\n" + text, encoding="utf-8")
        site.answer("reload")
        path.write_text(text.replace(before, after), encoding="utf-8")
        site.answer("reload")
        again = pending(ann, "agent:spawn", SPAWN)
        assert again != review
        site.answer("review", "approve", again)
        assert ann.call("agent:spawn", SPAWN)["agent_id"].startswith("worker-")


def test_an_approved_spawn_survives_an_edit_that_changes_nothing_of_it(site: Site) -> None:
    site.add_profile("worker", "capabilities: [state_read]\n")
    site.add_profile("gated", SPAWNER)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon, connect(daemon, daemon.new_key("ann", "gated")) as ann:
        site.answer("review", "approve", pending(ann, "agent:spawn", SPAWN))
        site.add_profile("worker", "# the same\ndescription: Works\ncapabilities: [state_read]\n")
        site.add_profile("other", "capabilities: [state_write]\n")
        site.answer("reload")
        ann.call("agent:spawn", SPAWN)


@pytest.mark.parametrize("is_approved", [True, False])
def test_an_approval_that_lapses_is_in_the_audit_and_in_the_list_of_those(
    site: Site, *, is_approved: bool
) -> None:
    site.add_profile("gated", GATED)
    site.configure(approval_wait=0.05, approval_timeout=1.0)
    with (
        site.serving() as daemon,
        connect(daemon, daemon.new_key("ann", "gated")) as ann,
        daemon.operator() as operator,
    ):
        review = pending(ann)
        if is_approved:  # at once: a command would take as long to start as the request lives
            operator.call("review:decide", {"id": review, "decision": "approve"})
        rows = eventually(
            lambda: site.answer("audit", "--event", "state:delete")["items"],
            lambda found: found[0]["outcome"] == "lapsed",
        )
        assert rows[0]["principal"] == "ann"
        assert rows[0]["reason"] == "approval_required"
        assert rows[0]["details"] == {"review": review, "approved": is_approved}
        assert ids(site, "lapsed") == [review]
        assert review not in ids(site, "approved")
        assert review not in ids(site, "pending")
        assert review in site.run("review", "list", "--status", "lapsed").stdout
    with site.serving():
        assert ids(site, "lapsed") == [review]
        outcomes = [
            row["outcome"] for row in site.answer("audit", "--event", "state:delete")["items"]
        ]
        assert outcomes.count("lapsed") == 1


def test_what_lapsed_while_nothing_ran_is_in_the_audit_of_the_next_daemon(site: Site) -> None:
    site.add_profile("gated", GATED)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon, connect(daemon, daemon.new_key("ann", "gated")) as ann:
        review = pending(ann)
        site.answer("review", "approve", review)
    site.configure(approval_wait=0.05, approval_timeout=0.01)
    with site.serving():
        assert ids(site, "lapsed") == [review]
        found = site.answer("audit", "--event", "state:delete")["items"]
        assert (found[0]["outcome"], found[0]["details"]["review"]) == ("lapsed", review)


def test_several_reviews_are_decided_in_one_command(site: Site) -> None:
    site.add_profile("gated", GATED)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon:
        with connect(daemon, daemon.new_key("ann", "gated")) as ann:
            first, second, third = (pending(ann, data={"key": key}) for key in "abc")
        done = site.run("review", "approve", first, "gated", "network_access", second)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("approved:") == 3
        done = site.run("review", "reject", first, third, "gated/network_access", "--json")
        report = json.loads(done.stdout)
        assert done.returncode == 1, "the first is decided already"
        assert [one["id"] for one in report["refused"]] == [first]
        assert [one["status"] for one in report["decided"]] == ["rejected", "rejected"]
        assert site.answer("review", "list", "--kind", "approval")["items"] == []


def test_an_approved_spawn_that_inherits_waits_again_when_its_parent_holds_more(
    site: Site,
) -> None:
    site.add_profile("gated", SPAWNER)
    site.configure(approval_wait=0.05)
    with site.serving() as daemon, connect(daemon, daemon.new_key("ann", "gated")) as ann:
        review = pending(ann, "agent:spawn", {"inherit": True})
        site.answer("review", "approve", review)
        site.add_profile("gated", SPAWNER.replace("state_write", "state_write, sessions"))
        site.answer("reload")
        again = pending(ann, "agent:spawn", {"inherit": True})
        assert again != review
        site.answer("review", "approve", again)
        assert "session:open" in ann.call("agent:spawn", {"inherit": True})["allowed_events"]
