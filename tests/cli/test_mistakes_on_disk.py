"""Files that cannot be written or used: a message with its repair, never a traceback."""

from pathlib import Path

import pytest
from tests.cli.shell import Shell


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


def test_doctor_leaves_loose_modes_of_a_key_to_the_next_start(shell: Shell) -> None:
    _secret(shell, "server.key", "no key").chmod(0o644)
    report = shell.json("doctor")
    assert [check["name"] for check in report["checks"] if check["state"] != "fine"] == ["home"]


def _secret(shell: Shell, name: str, text: str) -> Path:
    path = shell.write(f"home/{name}", text)
    path.parent.chmod(0o700)
    path.chmod(0o600)
    return path
