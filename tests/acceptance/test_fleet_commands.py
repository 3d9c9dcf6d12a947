"""Commands for fleets, as people type them beside a running daemon."""

import json
import re

import pytest
from tests.acceptance.site import Daemon

from remit_client.errors import RemitError


def test_an_agent_is_spawned_shown_in_the_tree_asked_about_and_ended(daemon: Daemon) -> None:
    site = daemon.site
    born = site.answer("spawn", "executor", "--id", "worker", "--deny", "state:delete")
    assert born["agent_id"] == "worker"
    assert "state:delete" not in born["allowed_events"]
    assert len(born["credentials"]["secret_key"]) == 40
    tree = site.run("agents")
    assert "worker  executor" in tree.stdout
    assert [item["agent_id"] for item in site.answer("agents")["items"]] == ["worker"]
    why = site.run("why", "worker", "state:delete", "--json")
    assert (why.returncode, json.loads(why.stdout)["reason"]) == (1, "explicit_deny")
    assert site.answer("revoke", "worker", "--yes")["terminated"] == ["worker"]
    assert site.answer("agents")["items"] == []


def test_nobody_is_asked_whether_to_end_nobody(daemon: Daemon) -> None:
    done = daemon.site.run("revoke", "nobody-here")
    assert done.returncode == 2
    assert "end nobody-here" not in done.stdout + done.stderr
    assert "unknown_agent" in done.stderr


def test_more_than_the_operator_may_give_is_not_given_by_a_typo(daemon: Daemon) -> None:
    done = daemon.site.run("spawn", "executr")
    assert done.returncode == 2
    assert "did you mean 'executor'?" in done.stderr


def test_top_shows_one_picture(daemon: Daemon) -> None:
    picture = daemon.site.run("top", "--once")
    assert picture.returncode == 0
    assert "revision" in picture.stdout
    assert "0 messages dropped" in picture.stdout
    stats = daemon.site.answer("top", "--once")["stats"]
    assert {"requests", "clients", "dropped", "evicted"} <= stats.keys()
    assert stats["clients"] > 0


def test_top_shows_what_each_agent_does(daemon: Daemon) -> None:
    with daemon.client("busy", "observer") as busy:
        for _ in range(7):
            busy.call("state:list")
        with pytest.raises(RemitError):
            busy.call("state:set", {"key": "a", "value": 1})
        report = daemon.site.answer("top", "--once")
        picture = daemon.site.run("top", "--once").stdout
        mine = busy.call("system:stats")["by_agent"]
    row = next(one for one in report["agents"] if one["agent"] == "busy")
    assert set(row) == {"agent", "calls", "denied", "queue", "dropped", "rate"}
    assert (row["calls"], row["denied"], row["queue"], row["dropped"]) == (8, 1, 0, 0)
    operator = next(one for one in report["agents"] if one["agent"] == "operator")
    assert operator["rate"] > 0, "it looked twice itself"
    assert re.search(r"^busy +8 +1 +0 +0 +0.0/s$", picture, re.MULTILINE)
    assert set(mine) == {"busy"}, "nobody sees beyond its own agents"


def test_the_demo_plays_with_measured_figures_and_real_places(daemon: Daemon) -> None:
    told = daemon.site.run("demo", "--json")
    assert told.returncode == 0, told.stderr
    played = json.loads(told.stdout)
    assert played["totals"] == {"allowed": 4, "denied": 4}
    denied = [step for step in played["steps"] if step["kind"] == "step" and not step["ok"]]
    assert all(step["decision"] for step in denied)
    assert any("base_multi_agent.yaml:9:26" in place for s in denied for place in s["rules"])
    bills = [step for step in played["steps"] if step["kind"] == "bill"]
    assert all(0 < bill["sent"] < bill["full_dump"] for bill in bills)


def test_a_mission_is_linked_bound_and_leaves_its_worker_nothing_else(daemon: Daemon) -> None:
    site = daemon.site
    shown = site.run("link", "state:get", "bake bread", "--tags", "eu,Salary", "--model", "m")
    assert shown.returncode == 0
    assert re.search(r"state:get +→ tool:state:get +\(unverified, ", shown.stdout)
    assert re.search(r"bake bread +→ MISSING", shown.stdout)
    assert "smith bake bread" in shown.stdout
    linked = site.answer("link", "state:get", "--bind")
    born = site.answer("spawn", "executor", "--id", "worker", "--session", linked["session"])
    assert born["allowed_events"] == ["state:get"]
    for_worker = site.answer("link", "state:get", "state:set", "--as", "worker")
    assert [one["tool"] for one in for_worker["needs"]] == ["tool:state:get", None]
