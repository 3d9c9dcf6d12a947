"""config, doctor, completion: looking after an installation."""

import re

import pytest
from tests.cli.shell import Shell

from remit.config.settings.table import SETTINGS


def test_config_shows_every_value_with_its_origin(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.write("remit.toml", '# mine\nlog_level = "debug"\nmax_in_flight = 7\n')
    monkeypatch.setenv("REMIT_MAX_IN_FLIGHT", "9")
    rows = {row["name"]: row for row in shell.json("config", "--home", "there")["settings"]}
    assert (rows["home"]["value"], rows["home"]["origin"]) == (
        str(shell.folder / "there"),
        "--home",
    )
    assert (rows["log_level"]["value"], rows["log_level"]["origin"]) == (
        "debug",
        f"{shell.folder}/remit.toml:2",
    )
    assert (rows["max_in_flight"]["value"], rows["max_in_flight"]["origin"]) == (
        9,
        "REMIT_MAX_IN_FLIGHT",
    )
    assert rows["endpoint"]["origin"] == "default"
    assert "REMIT_MAX_IN_FLIGHT" in shell.run("config").out


def test_the_home_may_be_named_before_or_after_the_command(shell: Shell) -> None:
    for arguments in (("--home", "h", "config"), ("config", "--home", "h")):
        rows = shell.json(*arguments)["settings"]
        assert rows[0]["value"] == str(shell.folder / "h")


def test_a_healthy_installation_is_told_so(shell: Shell) -> None:
    report = shell.json("doctor")
    assert report["ok"] is True
    assert {check["name"] for check in report["checks"]} >= {
        "python",
        "packages",
        "home",
        "socket",
        "definitions",
    }
    assert {check["state"] for check in report["checks"]} == {"fine"}
    assert "all is well" in shell.run("doctor").out


def test_doctor_finds_broken_definitions(shell: Shell) -> None:
    path = shell.write("capabilities.yaml", "version: 1\ncapabilities: {a: {requires: [b]}}\n")
    done = shell.run("doctor", "--catalogue", str(path))
    assert done.code == 1
    assert "BAD  definitions" in done.out
    assert "capabilities.yaml:2:" in done.out
    assert "repair: remit check" in done.out


def test_doctor_finds_loose_modes_and_says_how_to_repair_them(shell: Shell) -> None:
    home = shell.folder / "home"
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    report = shell.json("doctor")
    assert report["ok"] is True, "the next start repairs it"
    (check,) = (check for check in report["checks"] if check["name"] == "home")
    assert check["state"] == "warning"
    assert check["repair"] == f"chmod 700 {home}"
    assert home.stat().st_mode & 0o777 == 0o755, "looking changes nothing"


def test_doctor_finds_a_home_that_cannot_have_a_socket(shell: Shell) -> None:
    done = shell.run("doctor", "--home", "deep" * 40)
    assert done.code == 1
    assert "BAD  socket" in done.out


def test_doctor_reports_a_module_that_cannot_be_loaded(shell: Shell) -> None:
    shell.write("remit.toml", 'handlers = ["no_such_plugin"]\n')
    done = shell.run("doctor")
    assert done.code == 1
    assert "no_such_plugin" in done.out
    assert "no_such_plugin" in shell.run("check").err


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: Shell, name: str) -> None:
    done = shell.run("completion", name)
    assert done.code == 0
    assert "_REMIT_COMPLETE" in done.out


def test_completion_takes_the_shell_in_use(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    assert shell.run("completion").out == shell.run("completion", "fish").out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert shell.run("completion").code == 2


def test_a_screen_ends_with_one_next_command_when_somebody_looks(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "next:" not in shell.run("check").out
    monkeypatch.setenv("REMIT_SHOW_NEXT", "1")
    for command in (("check",), ("resolve", "minimal"), ("who-can", "state:get"), ("doctor",)):
        assert shell.run(*command).out.splitlines()[-1].startswith("next: remit "), command


def test_the_options_of_serve_stand_in_groups_each_once(shell: Shell) -> None:
    text = shell.run("serve", "--help").out
    sections = re.split(r"(?m)^(\S.*):\n", text)[1:]
    groups = dict(zip(sections[::2], sections[1::2], strict=True))
    assert list(groups)[:3] == ["This run", "Definitions", "Where it listens"]
    found = [flag for lines in groups.values() for flag in re.findall(r"(?m)^  (--[a-z-]+)", lines)]
    assert sorted(found) == sorted([row.flag for row in SETTINGS] + ["--json"])
    assert max(len(re.findall(r"(?m)^  -", lines)) for lines in groups.values()) <= 20
