"""Nobody outside harms the daemon: `python tools/drills/fetch.py [--lasting N]`.

Three parts. A daemon with its usual settings is asked for URLs that lead home in every known
disguise: each must be refused, and nobody may ever connect to the canary that listens there. A
daemon that may reach loopback fetches from a server that means no good: each answer must come in
time and be small, and the daemon must answer others meanwhile. And a fetcher whose resolver changes
its mind, or mixes addresses, must connect to checked addresses only. Prints one line of figures;
exit code 1 when something was wrong.
"""

import itertools
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import httpcore
from hostile_server import LASTING, HostileServer, serving
from stage import Daemon, Stage, arguments, new_folder, report

import remit_client
from remit.errors import DeniedError, FetchError
from remit.errors import RemitError as OurError
from remit.features.web.fetch import Fetcher
from remit.features.web.target import CheckedBackend
from remit_client.errors import RemitError

PUBLIC = "93.184.216.34"
REFUSED = {"denied", "invalid_data", "fetch_failed"}
AT_ONCE = 4
PATIENCE = 60.0
QUICK = 20.0
"""Seconds in which everything that does not last on purpose must be over, on a busy machine."""
HEALTH_SECONDS = 2.0
HOME_URLS = """
http://127.0.0.1:{port}/ http://127.1:{port}/ http://2130706433:{port}/ http://0x7f000001:{port}/
http://017700000001:{port}/ http://0177.0.0.1:{port}/ http://0x7f.0.0.1:{port}/ http://127.0.1:{port}/
http://localhost:{port}/ http://localhost.:{port}/ http://LOCALHOST:{port}/ http://0.0.0.0:{port}/
http://0:{port}/ http://[::1]:{port}/ http://[::]:{port}/ http://[0:0:0:0:0:0:0:1]:{port}/
http://[::ffff:127.0.0.1]:{port}/ http://[::ffff:7f00:1]:{port}/ http://[::127.0.0.1]:{port}/
http://[64:ff9b::7f00:1]:{port}/ http://[64:ff9b:1::7f00:1]:{port}/ http://[2002:7f00:1::]:{port}/
http://[2001:0:4136:e378:8000:63bf:80ff:fffe]:{port}/ http://[fe80::1]/ http://[fe80::1%25lo]:{port}/
http://[fec0::1]/ http://[fd00:ec2::254]/ http://[ff02::1]/ http://169.254.169.254/latest/meta-data/
http://100.100.100.200/ http://192.0.0.192/ http://168.63.129.16/ http://100.64.0.1/ http://10.0.0.1/
http://172.16.0.1/ http://192.168.0.1/ http://198.18.0.1/ http://224.0.0.1/ http://255.255.255.255/
http://user@127.0.0.1:{port}/ http://example.com@127.0.0.1:{port}/ http://127.0.0.1:{port}#@example.com/
http://%31%32%37.0.0.1:{port}/ http://127.0.0.1%00.example.com/ http://127\u30020\u30020\u30021:{port}/
http://\uff11\uff12\uff17.0.0.1:{port}/ http://\u2460\u2461\u2466.0.0.1/ http://loc\u0430lhost:{port}/
http://127.0.0.1:{port}\\@example.com/ http:\\\\127.0.0.1:{port}\\ file:///etc/passwd ftp://127.0.0.1/
gopher://127.0.0.1:{port}/_GET data:text/plain,x javascript:alert(1) jar:http://127.0.0.1!/ dict://127.0.0.1:{port}/
http:127.0.0.1:{port} //127.0.0.1:{port}/ http:///127.0.0.1:{port}/ unix:///run/x.sock
""".split()  # noqa: SIM905 - readable


class Drill:
    """What came of all cases."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.refused = self.answered = self.failed = self.cut = 0
        self.slowest = self.health = 0.0

    def note(self, case: str, problem: str) -> None:
        """Something that must not be."""
        self.problems.append(f"{case[:100]}: {problem}")

    async def home(self, stage: Stage, server: HostileServer) -> int:
        """Ask for what lies at home; all of it must be refused, and nobody may connect."""
        urls = [url.format(port=server.port) for url in HOME_URLS]
        async with remit_client.connect(home=stage.home) as client:
            for url in urls:
                try:
                    await client.call("web:web_fetch", {"url": url}, timeout=PATIENCE)
                    self.note(url, "was fetched")
                except RemitError as error:
                    self.refused += 1
                    if error.code not in REFUSED:
                        self.note(url, f"ended in {error.code}: {error}")
        return len(urls)

    async def outside(self, stage: Stage, server: HostileServer, lasting: int) -> int:
        """Fetch from a hostile server, while others ask how the daemon is."""
        paths = [path for path in server.plays if path not in LASTING]
        wanted = [(path, {"as_markdown": True}) for path in paths]
        wanted += [
            (path, more)
            for path in ("picture", "gzip-bomb")
            for more in ({"method": "HEAD"}, {"as_text": True})
        ]
        wanted += [(path, {}) for path in itertools.islice(LASTING, lasting)]
        queue = iter(wanted)
        async with (
            remit_client.connect(home=stage.home) as client,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._ask_for_health, stage)
            async with anyio.create_task_group() as workers:
                for _ in range(AT_ONCE):
                    workers.start_soon(self._work, client, server, queue)
            tasks.cancel_scope.cancel()
        return len(wanted)

    async def _work(
        self, client: Any, server: HostileServer, queue: Iterable[tuple[str, dict[str, Any]]]
    ) -> None:
        for path, more in queue:
            began = time.monotonic()
            data = {"url": f"http://127.0.0.1:{server.port}/{path}"} | more
            try:
                found = await client.call("web:web_fetch", data, timeout=PATIENCE)
                self.answered += 1
                self.cut += found["truncated"]
                if path.startswith("to-") and path != "to-nothing":
                    self.note(path, f"was followed: {str(found)[:200]}")
            except RemitError as error:
                self.failed += 1
                if error.code not in REFUSED:
                    self.note(path, f"ended in {error.code}: {error}")
            seconds = time.monotonic() - began
            if path not in LASTING:
                self.slowest = max(self.slowest, seconds)
                if seconds > QUICK:
                    self.note(path, f"took {seconds:.1f} s")

    async def _ask_for_health(self, stage: Stage) -> None:
        async with remit_client.connect(home=stage.home) as other:
            while True:
                began = time.monotonic()
                await other.call("system:health", timeout=PATIENCE)
                seconds = time.monotonic() - began
                self.health = max(self.health, seconds)
                if seconds > HEALTH_SECONDS:
                    self.note("system:health", f"took {seconds:.1f} s")
                await anyio.sleep(0.01)

    async def names(self, server: HostileServer) -> int:
        """Fetch by names whose addresses change, or are mixed, or lead home after a redirect."""
        cases: list[tuple[list[list[str]], str, bool]] = [
            ([[PUBLIC], ["127.0.0.1"]], "good", True),
            ([[PUBLIC], ["127.0.0.1"]], "loop", False),
            ([["127.0.0.1"]], "good", False),
            ([["::1"]], "good", False),
            ([[PUBLIC, "127.0.0.1"]], "good", False),
            ([["127.0.0.1", PUBLIC]], "good", False),
            ([[PUBLIC, "fe80::1"]], "good", False),
            ([["::ffff:127.0.0.1"]], "good", False),
            ([["64:ff9b::a00:1"]], "good", False),
            ([["169.254.169.254"]], "good", False),
            ([[]], "good", False),
            ([["not an address"]], "good", False),
            ([[PUBLIC] * 50], "good", True),
            ([[PUBLIC]] * 6, "to-metadata", False),
            ([[PUBLIC]] * 6, "to-any", False),
            ([[PUBLIC]] * 6, "to-file", False),
            ([[PUBLIC]] * 6, "to-decimal", False),
        ]
        for at, (answers, path, is_good) in enumerate(cases):
            dialled = _Detour(server)
            case = f"names {at} {path}"
            backend = CheckedBackend(_changing(answers), inner=dialled)
            fetcher = Fetcher(backend=lambda backend=backend: backend)  # type: ignore[misc]
            try:
                await fetcher.fetch(f"http://evil.test/{path}")
                self.answered += 1
                if not is_good:
                    self.note(case, "was fetched")
            except (DeniedError, FetchError):
                self.refused += 1
                if is_good:
                    self.note(case, "was refused")
            except OurError as error:
                self.note(case, f"ended in {error.code}")
            if set(dialled.addresses) - {PUBLIC}:
                self.note(case, f"dialled {dialled.addresses}")
        return len(cases)


class _Detour(httpcore.AsyncNetworkBackend):
    """Writes down what is dialled, and connects to the hostile server."""

    def __init__(self, server: HostileServer) -> None:
        self.addresses: list[str] = []
        self._port = server.port

    async def connect_tcp(self, host: str, *args: Any, **more: Any) -> httpcore.AsyncNetworkStream:
        self.addresses.append(host)
        return await httpcore.AnyIOBackend().connect_tcp("127.0.0.1", self._port)


def _changing(answers: list[list[str]]) -> Any:
    left = iter(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return next(left)

    return resolve


def _started(folder: Path, name: str, **settings: Any) -> tuple[Stage, Daemon]:
    place = folder / name
    place.mkdir()
    stage = Stage(place)
    stage.catalogue(
        "version: 1\ncapabilities:\n  base: {description: all, event_patterns: [system:health]}\n"
    )
    stage.configure(**settings)
    return stage, stage.start()


def _rss_mb(daemon: Daemon) -> int:
    lines = Path(f"/proc/{daemon.process.pid}/status").read_text(encoding="utf-8").splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) // 1024


async def play(folder: Path, lasting: int) -> tuple[dict[str, Any], list[str]]:
    """Run all three parts."""
    drill, cases, began = Drill(), 0, time.monotonic()
    async with serving() as canary, serving() as server:
        strict, first = _started(folder, "strict")
        open_, second = _started(folder, "open", web_fetch_private=True)
        try:
            cases += await drill.home(strict, canary)
            hits = next(canary.connections)
            if hits:
                drill.note("canary", f"{hits} connections")
            cases += await drill.outside(open_, server, lasting)
            cases += await drill.names(server)
            peak = _rss_mb(second)
        finally:
            exits = [daemon.terminate()[0] for daemon in (first, second)]
        if any(exits):
            drill.note("daemons", f"ended with {exits}")
    figures = {
        "cases": cases,
        "refused": drill.refused,
        "answered": drill.answered,
        "failed": drill.failed,
        "cut": drill.cut,
        "canary_connections": hits,
        "slowest_s": round(drill.slowest, 2),
        "health_slowest_ms": round(drill.health * 1000, 1),
        "daemon_peak_mb": peak,
        "seconds": round(time.monotonic() - began, 1),
    }
    return figures, drill.problems


def main() -> int:
    """Read the options, play, report."""
    options = arguments(__doc__ or "", lasting=2)
    with new_folder() as folder:
        figures, problems = anyio.run(play, folder, options.lasting)
    return report(figures, problems, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
