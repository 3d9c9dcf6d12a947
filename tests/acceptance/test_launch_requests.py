"""What a request to launch may say, and what the process that comes of it gets."""

import json
import os
import pwd
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.site import Daemon, Site, eventually, new_site

import remit_client.sync
from remit_client.errors import RemitError

BOSS = "capabilities: [spawn_agents, state_read]\nadditional_tools: ['agent:spawn']\n"
LOOK = """
import json, os, stat, sys
here = os.stat(".")
print(json.dumps({
    "argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "uid": os.getuid(),
    "groups": os.getgroups(), "mode": stat.S_IMODE(here.st_mode), "owner": here.st_uid,
    "files": os.listdir("."),
    "descriptors": [n for n in range(99) if os.path.lexists(f"/proc/self/fd/{n}")],
    "key": bool(open(os.environ["REMIT_KEY"]).read()),
}))
open("left", "w").write("mine")
"""
NOBODY = "nobody"


def look(folder: Path, **more: object) -> dict[str, object]:
    path = folder / "look.py"
    path.write_text(LOOK, encoding="utf-8")
    return {"name": "look", "command": sys.executable, "args": [str(path)], **more}


def spawn(remit: remit_client.sync.Client, name: str, **request: Any) -> Any:
    remit.call("agent:spawn", {"agent_id": name, "launch": {"command": "look"}, **request})

    def printed() -> str:
        process = remit.call("agent:status", {"agent_id": name})["process"]
        return str(process["output"]) if process["state"] in ("exited", "failed") else ""

    return json.loads(eventually(printed, bool))


def refused(remit: remit_client.sync.Client, request: dict[str, Any]) -> RemitError:
    with pytest.raises(RemitError) as caught:
        remit.call("agent:spawn", request)
    return caught.value


@pytest.mark.parametrize("command", ["bash", "python3", "node"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("env", {"BASH_ENV": "$(id >&2)"}, id="BASH_ENV"),
        pytest.param("env", {"NODE_OPTIONS": "--import=data:text/javascript,1"}, id="NODE_OPTIONS"),
        pytest.param("env", {"PYTHONPATH": "/srv"}, id="PYTHONPATH"),
        pytest.param("args", ["-c", "id"], id="arguments"),
        pytest.param("cwd", "/", id="folder"),
        pytest.param("ready", "claude", id="ready"),
    ],
)
def test_a_request_chooses_no_environment_folder_or_arguments(
    hostile: tuple[Daemon, remit_client.sync.Client], command: str, field: str, value: object
) -> None:
    _, boss = hostile
    launch = {"command": command, field: value}
    error = refused(boss, {"profile": "boss", "agent_id": "kid", "launch": launch})
    assert error.code == "invalid_data"
    assert field in error.message


@pytest.mark.parametrize(
    ("values", "path"),
    [
        pytest.param({}, "values", id="none"),
        pytest.param({"word": "tide", "more": "x"}, "values", id="one-too-many"),
        pytest.param({"word": "tide\n"}, "values.word", id="a-line-break-at-the-end"),
        pytest.param({"word": "tide\nebb"}, "values.word", id="two-lines"),
        pytest.param({"word": "tide --eval=1"}, "values.word", id="more-than-the-pattern"),
        pytest.param({"word": "-tide"}, "values", id="an-option"),
        pytest.param({"word": ""}, "values.word", id="nothing"),
        pytest.param({"word": "a\0b"}, "values.word", id="a-nul-byte"),
        pytest.param({"word": "a" * 5000}, "values[...]", id="too-long"),
    ],
)
def test_a_placeholder_takes_what_its_pattern_says_and_nothing_else(
    hostile: tuple[Daemon, remit_client.sync.Client], values: dict[str, str], path: str
) -> None:
    _, boss = hostile
    launch = {"command": "script", "values": values}
    error = refused(boss, {"profile": "boss", "agent_id": "kid", "launch": launch})
    assert (error.code, error.details["path"]) == ("invalid_data", f"$.launch.{path}")


def test_a_variable_that_may_be_any_text_reaches_no_command(
    hostile: tuple[Daemon, remit_client.sync.Client],
) -> None:
    _, boss = hostile
    for name in ("free", "folder", "loud"):
        request = {"profile": "runner", "agent_id": "kid", "variables": {name: "/srv/evil"}}
        error = refused(boss, request)
        assert (error.code, error.details["path"]) == ("invalid_data", f"$.variables.{name}")
    error = refused(boss, {"profile": "runner", "variables": {"held": "no;t"}})
    assert error.code == "invalid_data"
    request = {"profile": "runner", "agent_id": "kid", "variables": {"held": "tide"}}
    assert boss.call("agent:spawn", request)["launched"]


RUNNER = f"""
variables:
  free: {{default: ""}}
  folder: {{default: /}}
  loud: {{default: ""}}
  held: {{default: ebb, pattern: "[a-z]+"}}
launcher:
  command: {sys.executable}
  args: ["-c", "pass", "{{{{free}}}}", "{{{{held}}}}"]
  cwd: "{{{{folder}}}}"
  env: {{LOUD: "{{{{loud}}}}"}}
"""


@pytest.fixture(scope="module")
def hostile() -> Any:
    with new_site() as site:
        for name in ("bash", "python3", "node"):
            path = site.folder / name
            path.write_text("#!/bin/sh\necho started\n", encoding="utf-8")
            path.chmod(0o755)
        plain = [{"name": n, "command": str(site.folder / n)} for n in ("bash", "python3", "node")]
        script: dict[str, Any] = {
            "name": "script",
            "command": str(site.folder / "bash"),
            "args": ["{{word}}"],
        }
        script["placeholders"] = {"word": "[a-z-]+$"}
        site.configure(launch_commands=[*plain, script, sys.executable])
        site.add_profile("boss", BOSS)
        site.add_profile("runner", RUNNER)
        with site.serving() as daemon, daemon.client("boss", "boss") as boss:
            yield daemon, boss


def test_a_process_gets_few_variables_its_own_folder_and_no_descriptor_of_ours(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "do-not-tell")
    site.configure(launch_commands=[look(site.folder, env={"MODE": "calm"})])
    with site.serving() as daemon, daemon.operator() as remit:
        told = spawn(remit, "ann", profile="minimal")
        own = {"REMIT_AGENT_ID", "REMIT_ENDPOINT", "REMIT_KEY", "REMIT_LAUNCHED"}
        few = {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LC_CTYPE"}
        assert told["env"].keys() - few == own | {"REMIT_SERVER_KEY", "MODE"}
        assert told["descriptors"] == [0, 1, 2]
        assert (told["cwd"], told["files"]) == (str(site.home / "launched" / "ann"), [])
        assert (told["mode"], told["owner"]) == (0o700, os.getuid())
        remit.call("agent:terminate", {"agent_id": "ann"})
        assert not (site.home / "launched" / "ann").exists()
        assert spawn(remit, "ann", profile="minimal")["files"] == [], "another agent of that name"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes as another user")
def test_a_process_runs_as_another_user_where_the_operator_says_so(site: Site) -> None:
    other = pwd.getpwnam(NOBODY)
    site.folder.chmod(0o755)
    entry = look(site.folder) | {"command": _python_for_everybody()}
    directory = site.folder / "launched"
    settings = {"launch_commands": [entry], "endpoint": "tcp://127.0.0.1:0"}
    site.configure(**settings, launch_user=NOBODY, launch_dir=str(directory))
    with site.serving() as daemon, daemon.operator() as remit:
        told = spawn(remit, "ann", profile="minimal")
        assert (told["uid"], told["owner"]) == (other.pw_uid, other.pw_uid)
        assert 0 not in told["groups"]
        assert told["env"]["HOME"] == other.pw_dir
        assert told["env"]["REMIT_KEY"] == str(directory / "ann.key")
        assert told["key"]
        assert stat.S_IMODE((directory / "ann.key").stat().st_mode) == 0o600
        assert (
            not os.access(site.home, os.R_OK, effective_ids=False)
            or site.home.stat().st_mode & 0o77 == 0
        )
        remit.call("agent:terminate", {"agent_id": "ann"})
        assert not list(directory.glob("ann*"))


def _python_for_everybody() -> str:
    found = "/usr/bin/python3"
    if not Path(found).exists():
        pytest.skip("there is no python that every user may run")
    return found


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"launch_user": "no-such-user"}, "no-such-user", id="nobody-of-that-name"),
        pytest.param({"launch_user": "root"}, "root", id="root"),
        pytest.param({"launch_user": NOBODY}, "socket", id="a-socket-in-the-home"),
        pytest.param(
            {"launch_user": NOBODY, "endpoint": "tcp://127.0.0.1:0"}, "home", id="no-directory"
        ),
        pytest.param(
            {
                "launch_user": NOBODY,
                "endpoint": "tcp://127.0.0.1:0",
                "launch_dir": "home/launched",
            },
            "cannot reach",
            id="out-of-reach",
        ),
    ],
)
def test_a_user_that_cannot_be_is_refused_by_check_and_at_the_start(
    site: Site, settings: dict[str, Any], problem: str
) -> None:
    site.configure(**settings)
    site.home.mkdir(mode=0o700)
    for command in ("check", "serve"):
        done = site.run(command)
        assert done.returncode == 2, done.stderr
        assert "[invalid_settings]" in done.stderr
        assert "launch_user" in done.stderr
        if os.geteuid() == 0:
            assert problem in done.stderr
        else:
            assert "only root" in done.stderr


def test_a_listed_command_that_is_not_installed_says_so(site: Site) -> None:
    site.configure(launch_commands=["no-such-program"])
    site.add_profile("printer", "launcher: {command: no-such-program}\n")
    warnings = site.answer("check")["warnings"]
    told = [one for one in warnings if one["code"] == "command_not_installed"]
    assert {Path(one["file"]).name for one in told} == {"printer.yaml", "remit.toml"}
    with site.serving() as daemon, daemon.operator() as remit:
        assert "launch_command_not_installed" in daemon.log()
        for request in ({"profile": "printer"}, {"launch": {"command": "no-such-program"}}):
            error = refused(remit, request)
            assert (error.code, error.details["reason"]) == ("unavailable", "not_installed")
            assert "not installed" in error.message


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "a"},
        {"name": "a", "command": "sh", "ready": "claude"},
        {"name": "a b", "command": "sh"},
        {"name": "a", "command": "{{which}}", "placeholders": {"which": "sh"}},
        {"name": "a", "command": "sh", "args": ["{{x}}"]},
        {"name": "a", "command": "sh", "placeholders": {"x": "y"}},
        {"name": "a", "command": "sh", "args": ["{{x}}"], "placeholders": {"x": "("}},
        {"name": "a", "command": "sh", "args": ["{{x}}"], "placeholders": {"x": "a)|(.*"}},
        {"name": "a", "command": "sh", "env": {"LD_PRELOAD": "x"}},
        {"name": "a", "command": "sh", "cwd": "here"},
        {"name": "a", "command": "sh", "shell": True},
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_with_its_line(
    site: Site, entry: dict[str, Any]
) -> None:
    site.configure(launch_commands=[entry])
    done = site.run("check")
    assert done.returncode == 2
    assert "remit.toml:3: launch_commands must be a list of commands" in done.stderr
