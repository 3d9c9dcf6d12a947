"""A full disk costs writes and log lines, and nothing else."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.acceptance.site import PATIENCE, Site, new_site
from tests.drills.drill import figures_of

from remit_client.errors import Denied

FULL = Path("/dev/full")


@pytest.fixture
def site() -> Generator[Site]:
    with new_site() as site:
        yield site


def can_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "remit-drill", folder]
        try:
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
        except FileNotFoundError:
            return False
        if done.returncode == 0:
            subprocess.run(["umount", folder], check=True)  # noqa: S603, S607
        return done.returncode == 0


@pytest.mark.skipif(not can_mount(), reason="to mount a tmpfs takes root and the right to mount")
def test_a_full_disk_refuses_writes_and_nothing_else() -> None:
    figures = figures_of("disk", "--rounds", "2", "--way", "tmpfs")
    assert figures["way"] == "tmpfs"
    assert figures["stayed_revoked"] > 0
    assert min(figures["refused"], figures["read_full"], figures["denied"]) > 0
    assert figures["started_full"] + figures["start_refused"] == 1


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits are set from outside: Linux")
def test_a_disk_that_takes_nothing_refuses_writes_and_nothing_else() -> None:
    figures = figures_of("disk", "--rounds", "1", "--way", "limit")
    assert min(figures["refused"], figures["read_full"], figures["denied"]) > 0


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_daemon_serves_and_ends_well_when_its_log_cannot_be_written(site: Site) -> None:
    site.log.unlink(missing_ok=True)
    site.log.symlink_to(FULL)
    with site.serving() as daemon, daemon.client("eve", "minimal") as eve:
        assert not eve.allowed("agent:spawn")
        with pytest.raises(Denied):
            eve.call("agent:spawn", {})  # which is logged
        assert eve.call("system:health")["status"] == "ok"


def test_a_daemon_that_cannot_write_its_home_says_so(site: Site) -> None:
    command = f'ulimit -f 0; exec "{sys.executable}" -m remit serve --home "{site.home}"'
    done = subprocess.run(  # noqa: S603 - our own command
        ["/bin/sh", "-c", command],
        cwd=site.folder,
        env=os.environ | site.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert "hint:" in done.stderr
