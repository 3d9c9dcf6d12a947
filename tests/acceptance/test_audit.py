"""The audit of a real daemon: looked up and proved by commands, whole after a kill."""

import json
import sqlite3
from contextlib import suppress

import pytest
from tests.acceptance.site import Daemon, Site

import remit_client.sync
from remit_client.errors import RemitError


def test_commands_look_up_what_happened(daemon: Daemon) -> None:
    site = daemon.site
    with daemon.client("ann", "observer") as ann, pytest.raises(RemitError):
        ann.call("state:set", {"key": "a", "value": 1})
    with daemon.operator() as operator:
        operator.call("state:set", {"key": "secret/token", "value": "xyzzy"})
    denied = site.answer("audit", "--agent", "ann", "--outcome", "denied", "--since", "1h")
    assert [row["event"] for row in denied["items"]] == ["state:set"]
    (row,) = site.answer("audit", "--decision", denied["items"][0]["decision"])["items"]
    assert row["reason"] == "no_grant"
    changes = site.run("audit", "--event", "state:*", "--limit", "5")
    assert "denied" in changes.stdout
    assert "2 rows" in changes.stdout
    assert "xyzzy" not in site.run("audit", "--json").stdout
    assert site.answer("audit", "--until", "2020-01-01")["items"] == []
    assert site.run("audit", "--since", "soon").returncode == 2
    assert site.run("audit", "--agent", "ann", "verify").returncode == 2


def test_a_whole_audit_is_proved_and_a_changed_row_is_named(site: Site) -> None:
    with site.serving() as daemon:
        for number in range(5):
            with daemon.operator() as operator:
                operator.call("state:set", {"key": "a", "value": number})
        done = site.run("audit", "verify")
        assert done.returncode == 0, done.stderr
        assert "the audit is whole" in done.stdout
        head = site.answer("audit", "verify")["head"]
        assert site.answer("audit", "verify", "--head", head)["ok"]
        wrong = site.run("audit", "verify", "--head", "1" * 64)
        assert wrong.returncode == 1
    with sqlite3.connect(site.home / "remit.db") as database:
        # Somebody who can write the file can also drop its triggers; the chain still tells.
        guards = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'"
        for (name,) in database.execute(guards).fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE audit SET principal = 'eve' WHERE seq = 3")
    database.close()
    with site.serving():
        broken = site.run("audit", "verify", "--json")
        assert broken.returncode == 1
        assert json.loads(broken.stdout)["first_bad"] == 3
        assert "row 3" in site.run("audit", "verify").stdout


def test_a_kill_in_the_middle_of_changes_leaves_a_whole_chain(site: Site) -> None:
    for round_ in range(3):
        daemon = site.start()
        try:
            with suppress(RemitError), remit_client.sync.connect(home=site.home) as client:
                done = 0
                for number in range(200):
                    client.call("state:set", {"key": f"k{round_}", "value": number}, timeout=2)
                    done = number
                    if number == 40 + round_:
                        daemon.process.kill()
        finally:
            daemon.kill()
        with site.serving() as after, after.operator() as operator:
            assert operator.call("audit:verify")["ok"]
            rows = operator.call("audit:query", {"event": "state:set", "limit": 500})["items"]
            written = [row for row in rows if row["details"]["data"]["key"] == f"k{round_}"]
            assert len(written) > done
            assert operator.call("state:get", {"key": f"k{round_}"})["value"] >= done


def test_rotation_keeps_the_chain_of_a_real_daemon(site: Site) -> None:
    site.configure(audit_keep=5)
    with site.serving() as daemon, daemon.operator() as operator:
        for number in range(20):
            operator.call("state:set", {"key": "a", "value": number})
    with site.serving():
        verdict = site.answer("audit", "verify")
        assert verdict["ok"]
        assert verdict["archived"]["rows"] >= 15
        assert verdict["rows"] == 5
