"""Files that cannot be written or used: a message with its repair, never a traceback."""

import ctypes
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.site import PATIENCE, Site, new_site
from tests.cli.shell import Shell

_DROP, _OVERRIDES = 24, (1, 2)
"""PR_CAPBSET_DROP, CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, of Linux."""


def _drop_overrides() -> None:
    for capability in _OVERRIDES:
        ctypes.CDLL(None).prctl(_DROP, capability, 0, 0, 0)


@pytest.mark.parametrize("out", ["/dev/full", "missing/graph.svg", "."])
def test_a_graph_that_cannot_be_written_is_bad_input(shell: Shell, out: str) -> None:
    done = shell.run("graph", "--out", out)
    assert done.code == 2
    assert "cannot be written" in done.err
    assert "--out" in done.err
    assert "written to" not in done.err


@pytest.mark.parametrize("name", ["server.key", "operator.key"])
@pytest.mark.parametrize("text", ["", "no key", "{}"])
def test_doctor_finds_a_key_that_the_next_start_cannot_use(
    shell: Shell, name: str, text: str
) -> None:
    path = _secret(shell, name, text)
    report = shell.json("doctor", code=1)
    (check,) = (check for check in report["checks"] if check["name"] == "keys")
    assert check["state"] == "broken"
    assert check["message"].startswith(f"{path}: not a key file")
    assert "backup" in check["repair"]


def test_doctor_finds_the_loose_modes_of_a_key(shell: Shell) -> None:
    key = _secret(shell, "server.key", "no key")
    key.chmod(0o644)
    report = shell.json("doctor", code=1)
    (check,) = (check for check in report["checks"] if check["state"] != "fine")
    assert (check["name"], check["state"]) == ("keys", "broken")
    assert check["repair"] == f"chmod 600 {key}"


def test_doctor_finds_a_store_that_is_no_database(shell: Shell) -> None:
    store = shell.write("home/remit.db", "this is no database, whatever its name says\n" * 50)
    store.parent.chmod(0o700)
    report = shell.json("doctor", code=1)
    (check,) = (check for check in report["checks"] if check["state"] == "broken")
    assert check["name"] == "store"
    assert check["message"] == f"{store}: it is not a database"
    assert check["repair"].endswith(f"mv {store} {store}.old")
    assert shell.run("doctor").code == 1


def test_doctor_finds_a_port_that_somebody_else_has(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for name, value in (("http", f"127.0.0.1:{port}"), ("endpoint", f"tcp://127.0.0.1:{port}")):
            shell.write("remit.toml", f'{name} = "{value}"\n')
            (check,) = broken(shell)
            assert check["name"] == "port"
            assert "remit.toml:1): another program listens there" in check["message"]
            assert name in check["repair"]


def test_doctor_finds_a_file_where_the_socket_must_be(shell: Shell) -> None:
    path = shell.write("home/remit.sock", "")
    path.parent.chmod(0o700)
    (check,) = broken(shell)
    assert (check["name"], check["repair"]) == ("socket", f"mv {path} {path}.old")


def test_doctor_finds_a_launch_command_that_is_not_installed(shell: Shell) -> None:
    shell.write("remit.toml", 'launch_commands = ["no-such-host", "sh"]\n')
    (check,) = broken(shell)
    assert check["name"] == "launching"
    assert "'no-such-host'" in check["message"]
    assert check["repair"]


def test_doctor_finds_files_that_were_left_out(shell: Shell) -> None:
    shell.write("remit.toml", 'card_dirs = ["cards"]\n')
    files = [
        shell.write(".remit/capabilities/a/SKILL.md", "no frontmatter\n"),
        shell.write(".remit/capabilities/b/CAPABILITY.yaml", "name: [\n"),
        shell.write("cards/c.md", "no frontmatter\n"),
    ]
    found = broken(shell)
    assert {check["name"] for check in found} == {"files"}
    assert sorted(check["message"].partition(":")[0] for check in found) == sorted(map(str, files))
    assert all(check["repair"] for check in found)


def test_doctor_finds_a_scorer_that_does_not_exist(shell: Shell) -> None:
    shell.write("remit.toml", 'awareness_scorer = "wrods"\n')
    (check,) = broken(shell)
    assert check["name"] == "scorer"
    assert "remit.toml:1) is 'wrods'" in check["message"]
    assert check["repair"] == "did you mean 'words'?"


@pytest.mark.parametrize(
    ("is_there", "mode"), [(True, 0o555), (False, 0o555), (True, 0o000), (False, 0o000)]
)
def test_doctor_finds_a_home_that_is_read_only(*, is_there: bool, mode: int) -> None:
    with new_site() as site:
        locked = site.folder / "locked"
        site.home = locked / "home" if not is_there else locked
        locked.mkdir()
        (locked / "operator.key").touch(0o600)
        locked.chmod(mode)
        checks = without_override(site, "doctor")["checks"]
        if mode == 0:
            refused = without_override(site, "check", code=2)["error"]
            assert refused["code"] == "unusable_home"
            assert "--home" in refused["hint"]
        locked.chmod(0o755)
    (check,) = (one for one in checks if one["name"] == "home")
    assert check["state"] == "broken"
    assert check["repair"]


def without_override(site: Site, *arguments: str, code: int = 1) -> Any:
    """Run a command whom modes bind, also where the tests are run by root; it finds something."""
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "remit", *arguments, "--json", "--home", str(site.home)],
        cwd=site.folder,
        env=site.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=_drop_overrides,
    )
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def broken(shell: Shell) -> list[dict[str, str]]:
    checks = shell.json("doctor", code=1)["checks"]
    return [check for check in checks if check["state"] == "broken"]


def _secret(shell: Shell, name: str, text: str) -> Path:
    path = shell.write(f"home/{name}", text)
    path.parent.chmod(0o700)
    path.chmod(0o600)
    return path
