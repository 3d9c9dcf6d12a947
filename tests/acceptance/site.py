"""A real daemon in a process of its own, with definitions that a test may edit."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import remit
import remit_client
import remit_client.sync
from remit.config.definitions.files import starter_dir
from remit_client.keys import Key, new_key

PATIENCE = 20.0
"""Seconds until a test gives up; a healthy daemon needs a fraction of one."""

Seen = TypeVar("Seen")


def toml_of(value: Any) -> str:
    """A value as a settings file has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    return json.dumps(value)


class Site:
    """A folder with a home, definitions and a remit.toml, in which commands are run.

    It lies directly under the system's temporary folder: pytest's own are too deep for a socket.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.catalogue = folder / "capabilities.yaml"
        self.compositions = folder / "compositions"
        self.log = folder / "log"
        shutil.copy(starter_dir() / "capabilities.yaml", self.catalogue)
        shutil.copytree(starter_dir() / "compositions", self.compositions)
        self.configure()

    def configure(self, **settings: Any) -> None:
        """Write the settings; the definitions are always those of this folder."""
        # A test says when its edits come in force, unless watching is what it is about.
        chosen = {"catalogue": "capabilities.yaml", "compositions": "compositions"} | settings
        chosen.setdefault("watch", False)
        lines = [f"{name} = {toml_of(value)}\n" for name, value in chosen.items()]
        (self.folder / "remit.toml").write_text("".join(lines), encoding="utf-8")

    def add_profile(self, name: str, text: str) -> None:
        (self.compositions / f"{name}.yaml").write_text(f"name: {name}\n{text}", encoding="utf-8")

    def add_module(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The test's own environment without anything that could reach a real installation."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("REMIT_", "XDG_"))
        }
        sources = [str(Path(package.__path__[0]).parent) for package in (remit, remit_client)]
        kept |= {"HOME": str(self.folder), "PYTHONPATH": os.pathsep.join(sources)}
        kept["REMIT_INVOKED_AS"] = "remit"
        return kept | dict(extra or {})

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "remit", *arguments, "--home", str(self.home)],
            cwd=self.folder,
            env=self.environment(env),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def answer(self, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
        """Run a command that must answer in JSON and agree."""
        done = self.run(*arguments, "--json", env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def serving(self) -> Generator["Daemon"]:
        """Run the daemon; it is stopped by SIGTERM and must end well."""
        daemon = self.start()
        try:
            yield daemon
            daemon.stop()
        finally:
            daemon.kill()

    def start(self) -> "Daemon":
        """Start the daemon and wait for its ready line."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [sys.executable, "-m", "remit", "serve", "--home", str(self.home), "--json"],
                cwd=self.folder,
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=log,
            )
        return Daemon(self, process)


class Daemon:
    """A daemon that said it was ready."""

    def __init__(self, site: Site, process: "subprocess.Popen[bytes]") -> None:
        self.site = site
        self.home = site.home
        self.process = process
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if readable else b""
        if not line:
            self.kill()
            raise AssertionError(f"no ready line:\n{self.log()}")
        self.ready: dict[str, Any] = json.loads(line)
        self.endpoint: str = self.ready["endpoints"]["zmq"]

    def log(self) -> str:
        return self.site.log.read_text(encoding="utf-8")

    @contextmanager
    def operator(self) -> Generator[remit_client.sync.Client]:
        with remit_client.sync.connect(home=self.home) as client:
            yield client

    def new_key(self, name: str, profile: str) -> Key:
        """Register a client under a profile."""
        key = new_key(name)
        data = {"name": name, "public_key": key.public_key, "profile": profile}
        with self.operator() as client:
            client.call("key:add", data)
        return key

    @contextmanager
    def client(self, name: str, profile: str) -> Generator[remit_client.sync.Client]:
        """A connection of a new client that holds a profile."""
        key = self.new_key(name, profile)
        with remit_client.sync.connect(home=self.home, key=key) as client:
            yield client

    def reload(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, self.log()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def new_site() -> Generator[Site]:
    with tempfile.TemporaryDirectory(prefix="remit-") as folder:
        yield Site(Path(folder))


def eventually(
    look: Callable[[], Seen], wanted: Callable[[Seen], bool], *, seconds: float = PATIENCE
) -> Seen:
    """Look again and again until it is as wanted; each look waits for the daemon by itself."""
    deadline = time.monotonic() + seconds
    while not wanted(seen := look()):
        assert time.monotonic() < deadline, f"still {seen!r}"
    return seen
