"""What CONTRIBUTING.md says to write works as it stands, in a copy of the checkout."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, Block, blocks

import remit_client.sync
from remit_client.errors import UnknownEvent
from remit_client.sync import Client

BLOCKS = [block for block in blocks(ROOT / "CONTRIBUTING.md") if block.directive]
COPIED = ["daemon", "socket_client", "tools", "tests", "compositions"]
FILES = ["capabilities.yaml", "pyproject.toml"]
SECONDS = 60


class Checkout:
    """A copy of this one with what the page says to write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        no_caches = shutil.ignore_patterns("__pycache__", ".*_cache")
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=no_caches)
        for name in FILES:
            shutil.copy(ROOT / name, folder)
        paths = [str(folder / "daemon"), str(folder / "socket_client")]
        self.home = folder / "home"
        ours = {key: value for key, value in os.environ.items() if not key.startswith("REMIT_")}
        self.environment = ours | {
            "PYTHONPATH": os.pathsep.join(paths),
            "REMIT_HOME": str(self.home),
            "HOME": str(folder),
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-P", *arguments]

    def run(self, *arguments: str) -> str:
        """What a command of Python prints; it must end well."""
        done = subprocess.run(  # noqa: S603
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def daemon(self) -> Generator[tuple[Client, dict[str, str]]]:
        """The operator's connection to a daemon that ends well, and where its faces are."""
        with (self.folder / "log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(  # noqa: S603
                self.command("-m", "remit", "serve", "--json"),
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert process.stdout is not None
        with process, process.stdout:
            try:
                line = process.stdout.readline()
                assert line, (self.folder / "log").read_text(encoding="utf-8")
                with remit_client.sync.connect(home=self.home) as remit:
                    yield remit, json.loads(line)["endpoints"]
            finally:
                process.terminate()
                assert process.wait(SECONDS) == 0


def write(folder: Path, block: Block) -> None:
    """Do to a file what the directive of a block says."""
    path = folder / block.argument
    if block.directive == "file":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    if block.directive == "append":
        apart = "\n\n" if path.suffix == ".py" else ""
        text = f"{text}{apart}{block.text}"
    else:
        text = edited(text, block)
    path.write_text(text, encoding="utf-8")


def edited(text: str, block: Block) -> str:
    """A text with the edit of a block, which names each place by a line that is there."""
    lines, at, added = text.splitlines(), 0, list[str]()
    for line in block.text.splitlines():
        mark, content = line[:1], line[1:]
        if mark == "+":
            added.append(content)
            continue
        assert content in lines[at:], f"{block.place}: no line {content!r} in {block.argument}"
        at = lines.index(content, at)
        end = at + (mark == "-")
        lines[at:end] = added
        at += len(added)
        added = []
    return "\n".join([*lines[:at], *added, *lines[at:]]) + "\n"


@pytest.fixture(scope="module")
def checkout() -> Iterator[Checkout]:
    with tempfile.TemporaryDirectory(prefix="remit-", dir="/tmp") as folder:  # a short path
        found = Checkout(Path(folder))
        for block in BLOCKS:
            write(found.folder, block)
        found.run("tools/lib/manifest.py")
        yield found


def test_the_page_adds_a_feature_an_event_and_a_face() -> None:
    written = {block.argument for block in BLOCKS if block.directive == "file"}
    assert {Path(name).parts[2] for name in written if name.startswith("daemon")} == {
        "features",
        "faces",
    }
    assert "daemon/remit/app/features.py" in {block.argument for block in BLOCKS}


def test_the_tests_of_the_page_pass_and_the_feature_can_be_taken_out(checkout: Checkout) -> None:
    tests = [block.argument for block in BLOCKS if block.argument.startswith("tests/")]
    assert len(tests) == 3
    listed = (
        "tests/test_repository.py::test_the_contract_says_of_every_feature_which_others_it_uses"
    )
    without = (
        "tests/app/test_features.py::test_a_daemon_without_a_feature_starts_and_serves_the_rest"
    )
    checkout.run("-m", "pytest", "-q", *tests, listed, f"{without}[standup]")


def test_what_the_page_writes_is_in_the_style_of_the_house(checkout: Checkout) -> None:
    for steps in (["check", "-q"], ["format", "-q", "--check"]):
        checkout.run("-m", "ruff", *steps, "--no-cache", "daemon", "tests")
    checkout.run("-c", "from importlinter.cli import lint_imports_command as lint; lint()")


def test_a_daemon_serves_the_feature_the_event_and_the_face(checkout: Checkout) -> None:
    with checkout.daemon() as (remit, endpoints):
        remit.call("standup:report", {"text": "the lock"})
        assert remit.call("standup:list") == {"operator": "the lock"}
        assert remit.call("state:count") == {"total": 0}
        token = remit.call("key:token", {"audience": "line"})["token"]
        host, _, port = endpoints["line"].partition(":")
        with socket.create_connection((host, int(port))) as line:
            line.sendall(f'{token}\n{{"id": 1, "event": "standup:list"}}\n'.encode())
            assert json.loads(line.recv(65_536))["data"] == {"operator": "the lock"}


def test_without_its_line_in_the_list_the_feature_is_not_there(checkout: Checkout) -> None:
    path = checkout.folder / "daemon" / "remit" / "app" / "features.py"
    listed = path.read_text(encoding="utf-8")
    path.write_text(listed.replace("    standup.FEATURE,\n", ""), encoding="utf-8")
    try:
        with checkout.daemon() as (remit, _), pytest.raises(UnknownEvent):
            remit.call("standup:list")
    finally:
        path.write_text(listed, encoding="utf-8")
