"""Denials of a real daemon: counted and not written again, told by commands, kept over its end."""

import subprocess
import sys
import urllib.request
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site, eventually

import remit_client
import remit_client.sync

REPEATS = 30


def deny(client: remit_client.sync.Client, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(remit_client.RemitError):
            client.call("state:set", {"key": "a", "value": 1})


def denied_rows(site: Site) -> list[dict[str, Any]]:
    """The denials in the audit, oldest first."""
    return list(reversed(site.answer("audit", "--outcome", "denied", "--limit", "500")["items"]))


def test_a_clean_end_writes_what_was_counted(site: Site) -> None:
    with site.serving() as daemon, daemon.client("ann", "observer") as ann:
        deny(ann, REPEATS)
    with site.serving():
        first, repeats = denied_rows(site)
        assert (first["count"], repeats["count"]) == (1, REPEATS - 1)
        assert first["decision"] == repeats["decision"]
        assert first["at"] <= repeats["details"]["first_at"] <= repeats["details"]["last_at"]
        assert f"x{REPEATS - 1} more" in site.run("audit", "--outcome", "denied").stdout


def test_a_kill_keeps_the_first_row(site: Site) -> None:
    daemon = site.start()
    try:
        with daemon.client("ann", "observer") as ann:
            deny(ann, REPEATS)
    finally:
        daemon.kill()
    with site.serving():
        assert [row["count"] for row in denied_rows(site)] == [1]
        assert site.answer("audit", "verify")["ok"]


def test_tail_and_top_tell_how_often(site: Site) -> None:
    site.configure(denial_window=0.2)
    with site.serving() as daemon:
        key = daemon.new_key("ann", "observer")
        command = [sys.executable, "-m", "remit", "tail", "--denied", "--count", "3"]
        with (
            subprocess.Popen(  # noqa: S603 - our own command
                [*command, "--home", str(site.home)],
                stdout=subprocess.PIPE,
                cwd=site.folder,
                env=site.environment(),
                text=True,
            ) as tail,
            remit_client.sync.connect(home=site.home, key=key) as ann,
        ):
            eventually(lambda: deny(ann), lambda _: tail.poll() is not None)
            assert tail.stdout is not None
            lines = tail.stdout.read().splitlines()
        assert tail.returncode == 0
        assert all("DENY" in line and "ann" in line for line in lines)
        assert any(" more" in line for line in lines)
        assert " repeats)" in site.run("top", "--once").stdout
        stats = site.answer("call", "system:stats")
        assert 0 < stats["denied_repeats"] < stats["denied"]


def test_an_agent_with_a_limit_costs_the_others_no_rows(site: Site) -> None:
    site.add_profile("few", "extends: observer\nlimits: {max_calls_per_minute: 10}\n")
    with site.serving() as daemon, daemon.client("ann", "few") as ann:
        codes = [code_of(ann, f"secret:n{number}") for number in range(100)]
    assert codes == ["denied"] * 10 + ["limit_exceeded"] * 90
    with site.serving():
        found = denied_rows(site)
        assert [row["count"] for row in found] == [1] * 11 + [89]
        assert found[-1]["reason"] == "limit"
        assert found[-1]["details"]["limit"] == "max_calls_per_minute"


def code_of(client: remit_client.sync.Client, event: str) -> str:
    with pytest.raises(remit_client.RemitError) as caught:
        client.call(event)
    return caught.value.code


def test_denials_over_http_and_in_the_metrics_are_counted(site: Site) -> None:
    site.configure(http="127.0.0.1:0")
    with site.serving() as daemon:
        with daemon.client("ann", "observer") as ann:
            deny(ann, REPEATS)
        assert metric(daemon, "remit_denied_repeats_total") == REPEATS - 1
        assert metric(daemon, "remit_denied_total") == REPEATS


def metric(daemon: Daemon, name: str) -> float:
    address = daemon.ready["endpoints"]["http"]
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:  # noqa: S310
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))
