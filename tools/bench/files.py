"""Searching 10 MB of session files, against Python's `re` and the system's grep.

python tools/bench/files.py [--json FILE]
"""

import sys

sys.path.append(sys.path.pop(0))  # socket.py beside this file must not stand for the library's

import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
from report import Report, arguments, shortest, use_checkout

use_checkout()

from remit.app.features import event_modules  # noqa: E402 - after the checkout can be imported
from remit.app.kernel import build_services, make_kernel  # noqa: E402
from remit.config.definitions.files import (  # noqa: E402
    read_files,
    starter_dir,
)
from remit.config.settings.load import load_settings  # noqa: E402
from remit.kernel.authority.keyring import KeyRing  # noqa: E402
from remit.kernel.authority.revision import Authority, HandlerTable  # noqa: E402
from remit.kernel.authority.store import PrincipalRows  # noqa: E402
from remit.kernel.dispatch.dispatcher import Dispatcher  # noqa: E402
from remit.kernel.dispatch.registry import REGISTRY, load_handlers  # noqa: E402
from remit.kernel.feature import Startup  # noqa: E402
from remit.kernel.store.database import Database  # noqa: E402
from remit.model.principal import OPERATOR  # noqa: E402

FILES = 400
FILE_BYTES = 25_000
REPEATS = 7
PATTERNS = {
    "a word that is nowhere": "zyzzyva",
    "a word in one line of 100": "needle",
    "a pattern in one line of 100": r"n[aeiou]+dle\s+\w+",
    "one line of eight": r"^b\w",
}
BOMB = "(a+)+$"
WORDS = [f"{a}{b}{c}" for a in "bdfgklmr" for b in "aeiou" for c in "nprst"]


def make_files(seed: int = 1) -> dict[str, str]:
    """Text like prose: lines of words, and a needle in one of 100."""
    pick = random.Random(seed)  # noqa: S311 - the same text each time
    files = {}
    for number in range(FILES):
        lines: list[str] = []
        size = 0
        while size < FILE_BYTES:
            words = pick.choices(WORDS, k=12)
            if pick.random() < 0.01:  # noqa: PLR2004 - one of 100
                words[5] = "needle"
            lines.append(" ".join(words))
            size += len(lines[-1]) + 1
        files[f"/notes/{number % 20}/{number}.txt"] = "\n".join(lines) + "\n"
    return files


class Daemon:
    """A dispatcher over a database on disk, without a socket."""

    def __init__(self, database: Database) -> None:
        load_handlers(event_modules(), trusted=True)
        starter = read_files(starter_dir() / "capabilities.yaml", starter_dir() / "compositions")
        authority = Authority(HandlerTable(REGISTRY.handlers()), lambda: starter)
        settings = load_settings({}, {}, "/nonexistent")
        kernel = make_kernel(
            authority, database, KeyRing("operator", authority.fleet, PrincipalRows(database))
        )
        kernel = build_services(kernel, Startup(settings, database, HandlerTable()))
        self._dispatcher = Dispatcher(kernel)

    async def ask(self, event: str, **data: Any) -> Any:
        """What an event answers."""
        return await self._dispatcher.ask(OPERATOR, event, data)

    async def seconds(self, pattern: str) -> tuple[float, int]:
        """The fastest of several searches, and how many lines it found."""
        times, count = [], 0
        for _ in range(REPEATS):
            start = perf_counter()
            count = (await self.ask("file:grep_files", pattern=pattern))["match_count"]
            times.append(perf_counter() - start)
        return min(times), count


def with_re(files: dict[str, str], pattern: str) -> int:
    """The same with Python's `re`, line by line, on text that is in memory already."""
    search = re.compile(pattern).search
    return sum(1 for text in files.values() for line in text.splitlines() if search(line))


def with_grep(folder: Path, pattern: str) -> int:
    """The same with the system's grep on files."""
    command = ["grep", "-rhP", pattern, str(folder)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own words
    return done.stdout.count(b"\n")


async def measure(report: Report, folder: Path) -> None:
    """Fill the report."""
    files = make_files()
    megabytes = sum(map(len, files.values())) / 1e6
    async with Database(str(folder / "remit.db")) as database:
        daemon = Daemon(database)
        start = perf_counter()
        for path, text in files.items():
            await daemon.ask("file:write_file", path=path, content=text)
            copy = folder / "files" / path[1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
        print(f"{len(files)} files, {megabytes:.1f} MB, written in {perf_counter() - start:.2f} s")
        for what, pattern in PATTERNS.items():
            ours, found = await daemon.seconds(pattern)
            note = f"{ours * 1000:.0f} ms, {found:,} lines"
            theirs = shortest(lambda p=pattern: with_re(files, p), repeats=3)
            if found != with_re(files, pattern):
                raise SystemExit(f"{what}: found {found}, and re another number")
            report.faster(
                f"grep_files: {what}", "re, line by line, in memory", theirs / ours, note=note
            )
            if shutil.which("grep"):
                theirs = shortest(lambda p=pattern: with_grep(folder / "files", p), repeats=3)
                report.slower(f"grep_files: {what}", "grep -P on files", ours / theirs, note=note)
        usual, _ = await daemon.seconds("zyzzyva")
        await daemon.ask("file:write_file", path="/bomb", content="a" * 200_000 + "!")
        bomb, _ = await daemon.seconds(BOMB)
        note = f"{bomb * 1000:.0f} ms; re takes 2^n steps for n letters a"
        report.slower(f"grep_files: {BOMB}, 200,000 a", "a word", bomb / usual, note=note)


def main() -> int:
    """Measure and report."""
    options = arguments(__doc__ or "")
    report = Report(f"Searching {FILES} files of {FILE_BYTES:,} bytes in SQLite")
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(measure, report, Path(folder))
    return report.finish(options.json)


if __name__ == "__main__":
    raise SystemExit(main())
