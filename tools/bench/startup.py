"""How light remit is: CPU of questions, import of the daemon, memory of an idle one.

Every program runs with byte code that is compiled already, as after an installation; ratios are
against `python -c pass` in the same run. A row shows the best of many runs, its note their median.
The floor is what the libraries of every command cost before a line of remit runs. What only the
gate installs is hidden where a library would import it: structlog imports rich when it is there.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from report import ROOT, Report, arguments

RUNS = 21
MOST_CPU, MOST_SECONDS, MOST_IDLE, MOST_IDLE_HTTP = 6.0, 0.25, 45.0, 60.0
QUESTIONS = {
    "can": ("can", "base_multi_agent", "agent:spawn"),
    "why": ("why", "base_multi_agent", "agent:spawn"),
    "check": ("check",),
    "resolve": ("resolve", "observer"),
}
FLOOR = "import gc; gc.disable(); import click, msgspec, pathlib, yaml; gc.freeze()"
_SCRIPT = """
import sys
from remit.__main__ import main
if __name__ == "__main__":
    sys.exit(main())
"""
"""What an installer writes for `remit`."""
_COUNT = """
import sys
from remit.__main__ import main
try:
    main()
finally:
    own = sum(name.split(".")[0] == "remit" for name in sys.modules)
    sys.stderr.write(f"{len(sys.modules)} {own}")
"""
_SETTLED = 2.0
_ONLY_FOR_THE_GATE = ("rich",)


class Site:
    """A home, an empty folder to stand in, and compiled code that outlives no run of this."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "remit"
        self.script.write_text(_SCRIPT)
        hidden = folder / "hidden"
        hidden.mkdir()
        for name in _ONLY_FOR_THE_GATE:
            (hidden / f"{name}.py").write_text('raise ImportError("hidden")')
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "REMIT_HOME": str(folder / "home"),
            "PYTHONPATH": f"{hidden}:{ROOT / 'daemon'}:{ROOT / 'socket_client'}",
            "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        }

    def cpu(self, words: Sequence[str]) -> tuple[float, float]:
        """The CPU milliseconds of a program in its best run, and in the middle one."""
        self._once(words)
        found = [self._once(words) for _ in range(RUNS)]
        return min(found), statistics.median(found)

    def _once(self, words: Sequence[str]) -> float:
        quiet = [(os.POSIX_SPAWN_OPEN, one, os.devnull, os.O_WRONLY, 0) for one in (1, 2)]
        command = [sys.executable, *words]
        pid = os.posix_spawn(sys.executable, command, self.env, file_actions=quiet)
        _, status, used = os.wait4(pid, 0)
        if status:
            raise SystemExit(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
        return (used.ru_utime + used.ru_stime) * 1000

    def modules(self, words: Sequence[str]) -> tuple[int, int]:
        """How many modules a command has imported at its end, and how many of them are ours."""
        done = subprocess.run(  # noqa: S603 - our own script
            [sys.executable, "-c", _COUNT, *words],
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
        )
        counts = done.stderr.splitlines()[-1].rpartition("]")[2].split()[-2:]
        return int(counts[0]), int(counts[1])

    def idle(self, *options: str) -> float:
        """The resident megabytes of a daemon that nobody has asked anything."""
        words = [sys.executable, str(self.script), "serve", "--json", *options]
        process = subprocess.Popen(  # noqa: S603 - our own daemon
            words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert process.stdout is not None  # noqa: S101 - we asked for it
            process.stdout.readline()
            time.sleep(_SETTLED)
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        finally:
            process.terminate()
            process.wait(30)
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def questions(report: Report, site: Site, nothing: tuple[float, float]) -> None:
    """The CPU of each question, and of the libraries that all of them import."""
    best, median = site.cpu(["-c", FLOOR])
    note = f"median {median / nothing[1]:.1f}x; click, msgspec, pathlib and yaml"
    report.slower("floor: libraries", "python -c pass", best / nothing[0], note=note)
    for name, words in QUESTIONS.items():
        best, median = site.cpu([str(site.script), *words])
        every, own = site.modules(words)
        note = f"median {median / nothing[1]:.1f}x, {every} modules, {own} of them ours"
        ratio = best / nothing[0]
        report.slower(f"remit {name}", "python -c pass", ratio, at_most=MOST_CPU, note=note)


def daemon(report: Report, site: Site, nothing: tuple[float, float]) -> None:
    """What the daemon costs before anybody asks it anything."""
    best, median = site.cpu(["-c", "import remit.app.daemon"])
    report.judged(
        "import of the daemon",
        "python -c pass",
        best / nothing[0],
        budget=f"<= {MOST_SECONDS * 1000:.0f} ms",
        met=best <= MOST_SECONDS * 1000,
        note=f"{best:.0f} ms of CPU, median {median:.0f} ms",
    )
    site.idle("--http", "127.0.0.1:0")  # what it imports is compiled in this run
    own = site.idle()
    for what, options, most in (
        ("idle daemon", (), MOST_IDLE),
        ("idle daemon with HTTP", ("--http", "127.0.0.1:0"), MOST_IDLE_HTTP),
    ):
        held = site.idle(*options) if options else own
        report.judged(
            what,
            "idle daemon",
            held / own,
            budget=f"<= {most:g} MB",
            met=held <= most,
            note=f"{held:.1f} MB resident",
        )


def main() -> int:
    """Measure, print, and answer 1 when a budget was missed."""
    options = arguments(__doc__ or "")
    report = Report("Start-up and memory")
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder))
        nothing = site.cpu(["-c", "pass"])
        questions(report, site, nothing)
        daemon(report, site, nothing)
    return report.finish(options.json)


if __name__ == "__main__":
    sys.exit(main())
