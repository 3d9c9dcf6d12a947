"""Agents whose process the daemon starts, minds and ends."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.site import Site, eventually

import remit_client.sync
from remit_client.errors import RemitError

SCRIPT = """
import os, pathlib, time
import remit_client.sync
with remit_client.sync.connect() as remit:
    remit.call("state:set", {"key": "from/" + os.environ["REMIT_AGENT_ID"], "value": os.getpid()})
time.sleep(600)
"""

FAMILY = """
import os, subprocess, sys, time
wait = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(wait)
stranger = subprocess.Popen(wait, start_new_session=True)
with open(sys.argv[1], "a") as pids:
    pids.write(f"{os.getpid()} {child.pid} {stranger.pid}\\n")
time.sleep(600)
"""
PRINTER = """capabilities: {state_read: true}
variables: {team: {default: core, pattern: "[a-z]+"}}
launcher:
  command: PYTHON
  args:
    - -c
    - import os, sys; print('hello to', sys.argv[1], 'from', os.environ['FROM'])
    - "{{team}}"
  env: {FROM: "the {{ team }} printer"}
"""
CODER = """extends: executor
variables: {topic: {default: docs}}
additional_tools: [Read]
disallowed_tools: [Bash]
prompt: You write code.
launcher: {ready: claude, args: ["-p", "Look at {{topic}}"], restart: on_failure}
"""
CLAUDE = """
import json, os, sys, time
told = {"argv": sys.argv[1:], "env": dict(os.environ), "pid": os.getpid()}
with open(os.path.expanduser("~/claude.jsonl"), "a") as starts:
    starts.write(json.dumps(told) + "\\n")
time.sleep(600)
"""


def script(folder: Path, name: str, text: str, *arguments: str) -> dict[str, object]:
    """An entry of the list that runs a script in Python."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return {"name": name, "command": sys.executable, "args": [str(path), *arguments]}


def test_a_launched_agent_works_under_its_own_key_comes_back_and_ends(site: Site) -> None:
    sources = os.pathsep.join(path for path in sys.path if path)
    worker = script(site.folder, "worker", SCRIPT) | {"env": {"PYTHONPATH": sources}}
    site.configure(launch_commands=[worker])
    request = {"profile": "executor", "agent_id": "ann", "launch": {"command": "worker"}}
    with site.serving() as daemon, remit_client.sync.connect(home=daemon.home) as remit:
        remit.call("agent:spawn", request)
        first = eventually(lambda: _pid(remit), bool)
        argv = Path(f"/proc/{first}/cmdline").read_bytes()
        assert b"secret" not in argv
        assert remit.call("agent:status", {"agent_id": "ann"})["process"]["state"] == "running"
        remit.call("state:delete", {"key": "from/ann"})
    assert _is_gone(first)
    with site.serving() as daemon, remit_client.sync.connect(home=daemon.home) as remit:
        again = eventually(lambda: _pid(remit), bool)
        assert again != first
        remit.call("agent:terminate", {"agent_id": "ann"})
        assert eventually(lambda: _is_gone(again), bool)
        assert not (daemon.home / "agents" / "ann.key").exists()


def test_what_the_operator_did_not_list_is_not_launched(site: Site) -> None:
    request = {"profile": "executor", "agent_id": "ann", "launch": {"command": sys.executable}}
    with site.serving() as daemon, remit_client.sync.connect(home=daemon.home) as remit:
        with pytest.raises(RemitError) as caught:
            remit.call("agent:spawn", request)
        assert caught.value.code == "denied"
        assert remit.call("agent:list")["items"] == []


def test_a_daemon_that_is_killed_leaves_no_process_behind(site: Site) -> None:
    family = script(site.folder, "family", FAMILY, str(site.folder / "pids"))
    site.configure(launch_commands=[family])
    launch = {"command": "family"}
    daemon = site.start()
    try:
        with daemon.operator() as remit:
            remit.call("agent:spawn", {"profile": "minimal", "agent_id": "ann", "launch": launch})
        ((parent, child, stranger),) = eventually(lambda: _families(site), bool)
        daemon.process.send_signal(signal.SIGKILL)
        assert eventually(lambda: _is_gone(parent), bool)
        assert not _is_gone(child)
    finally:
        daemon.kill()
    try:
        with site.serving():
            assert eventually(lambda: _is_gone(child), bool)
            later = eventually(lambda: _families(site)[1:], bool)
            assert len(later) == 1
            assert not _is_gone(stranger), "it left the session: nobody may take it for ours"
            _kill(later[0][2])
        assert _is_gone(later[0][0])
        assert _is_gone(later[0][1])
    finally:
        _kill(stranger)


def test_a_profile_starts_its_process_unless_the_request_says_otherwise(site: Site) -> None:
    mine = script(site.folder, "mine", "import sys; print(sys.argv[1:])", "{{word}}")
    site.configure(launch_commands=[mine | {"placeholders": {"word": "[a-z]+"}}])
    site.add_profile("printer", PRINTER.replace("PYTHON", sys.executable))
    site.add_profile("quiet_printer", "extends: printer\nlauncher: none\n")
    with site.serving() as daemon, daemon.operator() as remit:

        def output(**request: Any) -> str | None:
            name = remit.call("agent:spawn", {"profile": "printer", **request})["agent_id"]
            if remit.call("agent:status", {"agent_id": name})["process"] is None:
                return None
            return eventually(lambda: _ended(remit, name), bool)

        assert output() == "hello to core from the core printer\n"
        assert output(variables={"team": "docs"}) == "hello to docs from the docs printer\n"
        own = {"command": "mine", "values": {"word": "tide"}}
        assert output(launch=own) == "['tide']\n"
        assert output(launch={}) is None
        assert output(profile="quiet_printer") is None
        assert "process" in site.run("spawn", "printer", "--id", "zoe").stdout
        assert "process" not in site.run("spawn", "printer", "--no-launch").stdout
        key = {"profile": "printer", "public_key": "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"}
        with pytest.raises(RemitError) as caught:
            remit.call("agent:spawn", key)
        assert caught.value.code == "invalid_data"
        remit.call("agent:spawn", {**key, "launch": {}})


def test_a_profile_whose_command_is_not_listed_is_refused_with_the_setting_to_change(
    site: Site,
) -> None:
    site.add_profile("printer", PRINTER.replace("PYTHON", sys.executable))
    (warning,) = (
        one for one in site.answer("check")["warnings"] if one["code"] == "command_not_allowed"
    )
    assert (Path(warning["file"]).name, warning["line"]) == ("printer.yaml", 5)
    linted = json.loads(site.run("lint", "--json").stdout)
    assert [one["name"] for one in linted["commands_not_allowed"]] == [sys.executable]
    with site.serving() as daemon, daemon.operator() as remit:
        with pytest.raises(RemitError) as caught:
            remit.call("agent:spawn", {"profile": "printer"})
        assert caught.value.code == "denied"
        assert "launch_commands" in caught.value.hint
        assert remit.call("agent:list")["items"] == []
    site.configure(launch_commands=[sys.executable])
    assert "command_not_allowed" not in site.run("check", "--json").stdout
    assert json.loads(site.run("lint", "--json").stdout)["commands_not_allowed"] == []


@pytest.fixture
def claude(site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    """A command of that name on PATH which writes down how it was started."""
    folder = site.folder / "bin"
    folder.mkdir()
    (folder / "claude").write_text(f"#!{sys.executable}{CLAUDE}", encoding="utf-8")
    (folder / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    site.configure(launch_commands=["claude"])
    written = site.folder / "claude.jsonl"

    def starts() -> list[dict[str, Any]]:
        text = written.read_text(encoding="utf-8") if written.exists() else ""
        # The last line may still be on its way.
        return [json.loads(line) for line in text.split("\n")[:-1]]

    return starts


def test_the_ready_launcher_gives_claude_what_the_agent_holds_at_each_start(
    site: Site, claude: Callable[[], list[dict[str, Any]]]
) -> None:
    site.add_profile("coder", CODER)
    expected = site.answer("claude-args", "coder")["arguments"]
    with site.serving() as daemon, daemon.operator() as remit:
        request = {"profile": "coder", "agent_id": "cody", "system_prompt": "Be brief."}
        secrets = remit.call("agent:spawn", request)["credentials"]
        (first,) = eventually(claude, bool)
        assert first["argv"][:2] == ["-p", "Look at docs"]
        options = _options(first["argv"][2:])
        assert options["--allowedTools"] == _options(expected)["--allowedTools"]
        assert "mcp__remit__state_set" in options["--allowedTools"].split(",")
        assert options["--disallowedTools"] == _options(expected)["--disallowedTools"] == "Bash"
        assert options["--tools"] == _options(expected)["--tools"]
        assert options["--append-system-prompt"] == "You write code.\n\nBe brief."
        server = json.loads(options["--mcp-config"])["mcpServers"]["remit"]
        assert server["args"][-3:] == ["mcp", "--agent", "cody"]
        assert server["env"]["REMIT_KEY"] == first["env"]["REMIT_KEY"]
        told = json.dumps(first)
        assert secrets["secret_key"] not in told
        assert secrets["token"] not in told

        change = {"agent_id": "cody", "disallowed_tools": ["state:set"]}
        remit.call("agent:update", change)
        os.kill(first["pid"], signal.SIGKILL)
        second = eventually(claude, lambda starts: len(starts) > 1)[1]
        tools = _options(second["argv"][2:])["--allowedTools"].split(",")
        assert "mcp__remit__state_set" not in tools
        assert "mcp__remit__state_get" in tools
    with site.serving():
        third = eventually(claude, lambda starts: len(starts) > 2)[2]
        assert third["argv"] == second["argv"]


def test_a_request_that_names_claude_gets_it_with_what_the_agent_holds_and_never_bare(
    site: Site, claude: Callable[[], list[dict[str, Any]]]
) -> None:
    with site.serving() as daemon, daemon.operator() as remit:
        request = {"profile": "observer", "launch": {"command": "claude"}}
        remit.call("agent:spawn", {**request, "system_prompt": "--dangerously-skip-permissions"})
        (first,) = eventually(claude, bool)
        options = _options(first["argv"])
        assert options["--append-system-prompt"] == "\n--dangerously-skip-permissions"
        assert options["--tools"] == ""


def _options(arguments: list[str]) -> dict[str, str]:
    pairs = [one for one in arguments if one != "--strict-mcp-config"]
    assert len(pairs) == len(arguments) - 1
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _ended(remit: remit_client.sync.Client, agent: str) -> str:
    process = remit.call("agent:status", {"agent_id": agent})["process"]
    return str(process["output"]) if process["state"] == "exited" else ""


def _families(site: Site) -> list[tuple[int, int, int]]:
    """The process ids that each start wrote down: its own, a child's, and one's that left."""
    try:
        lines = (site.folder / "pids").read_text(encoding="ascii").split("\n")[:-1]
    except OSError:
        return []
    found = [tuple(map(int, line.split())) for line in lines]
    return [(line[0], line[1], line[2]) for line in found]


def _kill(pid: int) -> None:
    if not _is_gone(pid):
        os.kill(pid, signal.SIGKILL)


def _pid(remit: remit_client.sync.Client) -> int | None:
    try:
        return int(remit.call("state:get", {"key": "from/ann"})["value"])
    except RemitError:
        return None


def _is_gone(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
