"""What somebody else has put into a home, or could have changed there, is not used."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.acceptance.site import Site, new_site

OTHER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

UPSTREAMS = "upstreams:\n  evil: {command: [/bin/true]}\n"
PLAIN = [
    "remit.db",
    "remit.db-wal",
    "lock",
    "audit.head",
    "reserve",
    "upstreams.yaml",
    "upstreams/evil.json",
    "audit/1.jsonl",
]
NOTES = ["endpoint", "served.json", "server.pub"]
KEYS = ["server.key", "operator.key"]


def give_away(path: Path) -> None:
    os.chown(path, OTHER, OTHER)


def open_to_group(path: Path) -> None:
    path.chmod(0o664)


def open_to_all(path: Path) -> None:
    path.chmod(0o646)


def link(path: Path) -> None:
    elsewhere = path.with_name(f"{path.name}.elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


@pytest.fixture(scope="module")
def used() -> "Site":  # type: ignore[misc]
    """A home that was served before."""
    with new_site() as site:
        with site.serving():
            pass
        yield site


@pytest.fixture
def site(used: Site, tmp_path: Path) -> "Site":  # type: ignore[misc]
    with new_site() as fresh:
        shutil.copytree(used.home, fresh.home)
        fresh.home.chmod(0o700)
        yield fresh


def plant(site: Site, name: str, change: Callable[[Path], None]) -> Path:
    path = site.home / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        path.write_text(UPSTREAMS if name == "upstreams.yaml" else "", encoding="utf-8")
        path.chmod(0o600)
    change(path)
    return path


def refused(site: Site, path: Path, *arguments: str) -> None:
    done = site.run(*arguments)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert str(path) in done.stderr
    assert "[unusable_home]" in done.stderr
    assert "hint:" in done.stderr


@pytest.mark.parametrize("change", [open_to_group, open_to_all, link])
@pytest.mark.parametrize("name", PLAIN)
def test_a_daemon_does_not_start_on_what_others_could_have_changed(
    site: Site, name: str, change: Callable[[Path], None]
) -> None:
    if name == "upstreams.yaml" and change is link:
        pytest.skip("a link of one's own may lead to the list of servers")
    refused(site, plant(site, name, change), "serve")


@as_root
@pytest.mark.parametrize("name", [*PLAIN, *NOTES, *KEYS])
def test_a_daemon_does_not_start_on_files_of_another_user(site: Site, name: str) -> None:
    refused(site, plant(site, name, give_away), "serve")


@pytest.mark.parametrize("name", NOTES)
def test_what_is_written_anew_is_tightened(site: Site, name: str) -> None:
    path = plant(site, name, open_to_all)
    with site.serving():
        assert not path.stat().st_mode & 0o022


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("remit.db", ["can", "observer", "state:get"]),
        ("upstreams.yaml", ["who-can", "state:get"]),
    ],
)
def test_a_command_without_a_daemon_does_not_use_it_either(
    site: Site, name: str, command: list[str]
) -> None:
    path = plant(site, name, open_to_all)
    refused(site, path, *command)
    path.chmod(0o600)
    assert site.run(*command).returncode == 0


def test_the_doctor_names_the_file_and_the_repair(site: Site) -> None:
    path = plant(site, "remit.db", open_to_all)
    done = site.run("doctor")
    assert done.returncode != 0
    assert str(path) in done.stdout + done.stderr
    assert f"chmod go-w {path}" in done.stdout + done.stderr


def test_a_command_does_not_take_settings_from_what_others_could_have_changed(site: Site) -> None:
    with site.serving():
        path = site.home / "served.json"
        path.chmod(0o666)
        refused(site, path, "can", "observer", "state:get")


def test_a_key_of_the_server_that_others_could_change_is_not_trusted(site: Site) -> None:
    with site.serving():
        path = site.home / "server.pub"
        path.chmod(0o666)
        done = site.run("call", "system:health")
        assert done.returncode != 0
        assert str(path) in done.stderr
        path.chmod(0o644)
        assert site.run("call", "system:health").returncode == 0
