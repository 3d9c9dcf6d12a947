"""The tab key: names of profiles, agents, events and reviews, and never a traceback."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.acceptance.site import PATIENCE, Daemon, Site

from remit.cli.commands import COMMANDS

BREAKS = " \t\n\"'@><=;|&(:"
"""What ends a word in bash, as it comes."""


def press_tab(site: Site, shell: str, line: str, env: Mapping[str, str] | None = None) -> str:
    """What the script of a shell gets, with the cursor at the end of a line."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_WORDBREAKS": BREAKS},
        "zsh": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "fish": {"COMP_WORDS": line, "COMP_CWORD": words[-1]},
    }[shell]
    done = subprocess.run(
        [sys.executable, "-m", "remit"],
        cwd=site.folder,
        env=site.environment(
            {"_REMIT_COMPLETE": f"{shell}_complete", "REMIT_HOME": str(site.home), **asked}
            | dict(env or {})
        ),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def offered(site: Site, shell: str, line: str) -> list[str]:
    lines = press_tab(site, shell, line).splitlines()
    if shell == "zsh":
        return [value for kind, value in zip(lines[::3], lines[1::3], strict=True) if kind]
    return [line.partition(",")[2].partition("\t")[0] for line in lines]


@pytest.fixture(scope="module")
def site(daemon: Daemon) -> Site:
    with daemon.operator() as remit:
        remit.call("agent:spawn", {"profile": "executor", "agent_id": "worker"})
    return daemon.site


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_names_are_offered_in_every_shell(site: Site, shell: str) -> None:
    assert offered(site, shell, "remit resolve obs") == ["observer"]
    assert offered(site, shell, "remit why wor") == ["worker"]
    assert offered(site, shell, "remit revoke ") == ["worker"]
    assert offered(site, shell, "remit review approve adm") == ["administrator/network_access"]
    assert offered(site, shell, "remit gives state_r") == ["state_read"]
    assert offered(site, shell, "remit mcp --profile obs") == ["observer"]
    assert offered(site, shell, "remit can observer state") == [
        *("state:delete", "state:get", "state:list", "state:set")
    ]
    after = ["delete", "get", "list", "set"] if shell == "bash" else ["state:delete", "state:get"]
    found = offered(site, shell, "remit can observer state:")
    assert found[: len(after)] == after


def test_bash_itself_puts_the_names_in_its_place(site: Site, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    remit = tmp_path / "remit"
    remit.write_text(f'#!/bin/sh\nexec {sys.executable} -m remit "$@"\n')
    remit.chmod(0o755)
    press = (
        'eval "$(remit completion bash)"\n'
        'COMP_LINE="remit can observer state:g"; COMP_POINT=${#COMP_LINE}\n'
        "_remit_completion remit g :\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(  # noqa: S603 - our own script
        [bash, "--norc", "-c", press],
        env=site.environment(
            {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REMIT_HOME": str(site.home)}
        ),
        cwd=site.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("get\n", "")


def test_commands_are_offered_without_importing_one(site: Site) -> None:
    assert offered(site, "fish", "remit ") == list(COMMANDS)
    assert offered(site, "bash", "remit re") == ["resolve", "reload", "revoke", "review"]


@pytest.mark.parametrize(
    "line",
    ["remit can ", "remit can observer ", "remit review approve ", "remit why x y z ", "remit no "],
)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_whatever_is_wrong_nothing_else_is_printed(shell: str, line: str, tmp_path: Path) -> None:
    broken = Site(tmp_path)
    broken.home.mkdir(mode=0o700)
    (broken.home / "remit.db").write_text("no database")
    broken.catalogue.write_text("capabilities: [\n")
    (tmp_path / "plugin.py").write_text("print('loud')\n1 / 0\n")
    broken.configure(handlers=["plugin"])
    assert not {"Traceback", "loud"} & set(press_tab(broken, shell, line).split())
    (tmp_path / "remit.toml").write_text('catalogue = "capabilities.yaml"\nnonsense = 1\n')
    assert press_tab(broken, shell, line).strip() == ""
    assert press_tab(broken, shell, line, {"COMP_CWORD": "x", "COMP_POINT": "x"}) in ("", "\n")
