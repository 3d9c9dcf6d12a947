"""What answers in `mcp.py`: daemons in homes of their own, and the peers, as processes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import free_port, running, until_it_listens
from report import ROOT

HERE = Path(__file__).parent
AGENT = "bench"
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith("REMIT_")
} | {"PYTHONPATH": os.pathsep.join([str(ROOT / "daemon"), str(ROOT / "socket_client")])}
_REMIT = [sys.executable, "-m", "remit"]
_CAPABILITIES = """
  bench_tools:
    description: The tools of the benchmark
    event_patterns: ["bench:*", "mcp:*"]
"""
_PROFILE = "name: bench\ndescription: The tools of the benchmark\ncapabilities: [bench_tools]\n"


class Daemon:
    """A daemon that is ready, and the agent that asks it."""

    def __init__(self, process: "subprocess.Popen[bytes]", home: Path, ready: Any) -> None:
        self.process = process
        self.home = home
        self.port = int(ready["endpoints"]["http"].rpartition(":")[2])
        if not (home / "keys" / f"{AGENT}.key").exists():  # it may not be the first in this home
            self.run("key", "new", AGENT, "--profile", "bench")
        self.token: str = self.run("key", "token", AGENT)["token"]

    @property
    def pid(self) -> int:
        """Its process."""
        return self.process.pid

    def run(self, *arguments: str, patient: bool = False) -> Any:
        """What a command answers; a patient one may also answer that something is not well."""
        done = subprocess.run(  # noqa: S603 - ourselves
            [*_REMIT, *arguments, "--home", str(self.home), "--json"],
            env=ENVIRONMENT,
            cwd=self.home.parent,
            capture_output=True,
            check=False,
        )
        if done.returncode and not patient:
            raise RuntimeError(done.stderr.decode() or done.stdout.decode())
        return json.loads(done.stdout)


@contextmanager
def daemon(
    folder: Path, *, tools: str = "", upstreams: Any = None, home: Path | None = None
) -> Iterator[Daemon]:
    """A daemon, perhaps with tools of a module, perhaps with servers behind it."""
    folder.mkdir()
    starter = ROOT
    shutil.copytree(starter / "compositions", folder / "compositions")
    catalogue = (starter / "capabilities.yaml").read_text(encoding="utf-8")
    (folder / "capabilities.yaml").write_text(catalogue + _CAPABILITIES, encoding="utf-8")
    (folder / "compositions" / "bench.yaml").write_text(_PROFILE, encoding="utf-8")
    settings: dict[str, Any] = {"catalogue": "capabilities.yaml", "compositions": "compositions"}
    settings |= {"watch": False, "http": "127.0.0.1:0", "log_level": "error"}
    if tools:
        (folder / "bench_events.py").write_text(tools, encoding="utf-8")
        settings |= {"handlers": ["bench_events"], "handler_paths": ["."]}
    if upstreams:
        text = json.dumps({"version": 1, "upstreams": upstreams})
        (folder / "upstreams.yaml").write_text(text, encoding="utf-8")
        settings["upstreams"] = "upstreams.yaml"
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
    (folder / "remit.toml").write_text("".join(lines), encoding="utf-8")
    home = home or folder / "home"
    process = subprocess.Popen(  # noqa: S603 - ourselves
        [*_REMIT, "serve", "--home", str(home), "--json"],
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        cwd=folder,
    )
    with running(process):
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        yield Daemon(process, home, json.loads(process.stdout.readline()))


def peer_command(name: str, folder: Path, *transport: str) -> list[str]:
    """How one of the others is started."""
    return [sys.executable, "-P", str(HERE / "mcp_peers.py"), name, str(folder), *transport]


@contextmanager
def over_streams(command: list[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A server on standard streams."""
    process = subprocess.Popen(  # noqa: S603 - ourselves, or a peer
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, cwd=folder
    )
    with running(process):
        yield process


def agent_command(home: Path) -> list[str]:
    """How a host starts remit for an agent."""
    return [*_REMIT, "mcp", "--agent", AGENT, "--home", str(home)]


@contextmanager
def over_http(name: str, folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """One of the others over HTTP, and its port."""
    port = free_port()
    process = subprocess.Popen(  # noqa: S603 - a peer
        peer_command(name, folder, "http", str(port)), env=ENVIRONMENT
    )
    with running(process):
        until_it_listens(port)
        yield process, port
