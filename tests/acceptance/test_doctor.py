"""`remit doctor` beside a running daemon: what is wrong is found, and the healthy is not blamed."""

import json
import shutil

import pytest
from tests.acceptance.site import Daemon, Site


@pytest.fixture(scope="module")
def site(daemon: Daemon) -> Site:
    return daemon.site


def broken(site: Site) -> list[dict[str, str]]:
    done = site.run("doctor", "--json")
    assert done.returncode == 1, done.stdout
    return [one for one in json.loads(done.stdout)["checks"] if one["state"] == "broken"]


def test_doctor_blames_the_key_and_not_the_healthy_daemon(site: Site, daemon: Daemon) -> None:
    key = site.home / "operator.key"
    key.chmod(0o644)
    try:
        found = broken(site)
        assert {one["repair"] for one in found} == {f"chmod 600 {key}", f"run: chmod 600 {key}"}
        assert "kill" not in repr(found)
    finally:
        key.chmod(0o600)
    assert site.run("doctor").returncode == 0


def test_doctor_finds_what_the_healthy_daemon_does_not_run_on(site: Site, daemon: Daemon) -> None:
    assert daemon.process.poll() is None
    before = site.catalogue.read_text()
    site.catalogue.write_text(before + "  late: {description: Not in force yet}\n")
    (stale,) = broken(site)
    assert stale["name"] == "definitions"
    assert stale["repair"] == "remit plan, then remit reload"
    site.catalogue.write_text(before)
    site.configure(watch=False, request_timeout=3.5)
    (other,) = broken(site)
    assert other["name"] == "settings"
    assert other["message"].startswith("request_timeout is 3.5 here (")
    site.configure(watch=False, compositions="elsewhere")
    (site.folder / "elsewhere").mkdir()
    assert {one["name"] for one in broken(site)} == {"definitions"}
    site.configure()
    assert site.run("doctor").returncode == 0


def test_doctor_tells_of_files_that_the_daemon_left_out(site: Site, daemon: Daemon) -> None:
    file = site.folder / ".remit" / "capabilities" / "words" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("no frontmatter\n")
    with daemon.operator() as remit:
        remit.call("discovery:refresh")
    (found,) = broken(site)
    assert (found["name"], found["message"].partition(":")[0]) == ("files", str(file))
    shutil.rmtree(site.folder / ".remit")
    with daemon.operator() as remit:
        remit.call("discovery:refresh")
    assert site.run("doctor").returncode == 0
