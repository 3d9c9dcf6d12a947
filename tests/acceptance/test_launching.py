"""Agents whose process the daemon starts, minds and ends."""

import os
import sys
from pathlib import Path

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


def launch(folder: Path) -> dict[str, object]:
    script = folder / "agent.py"
    script.write_text(SCRIPT, encoding="utf-8")
    sources = os.pathsep.join(path for path in sys.path if path)
    return {"command": sys.executable, "args": [str(script)], "env": {"PYTHONPATH": sources}}


def test_a_launched_agent_works_under_its_own_key_comes_back_and_ends(site: Site) -> None:
    site.configure(launch_commands=[sys.executable])
    request = {"profile": "executor", "agent_id": "ann", "launch": launch(site.folder)}
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
    request = {"profile": "executor", "agent_id": "ann", "launch": launch(site.folder)}
    with site.serving() as daemon, remit_client.sync.connect(home=daemon.home) as remit:
        with pytest.raises(RemitError) as caught:
            remit.call("agent:spawn", request)
        assert caught.value.code == "denied"
        assert remit.call("agent:list")["items"] == []


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
