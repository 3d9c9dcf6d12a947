"""The part of `mcp.py` about memory."""

import sys
from pathlib import Path

from mcp_hosts import MODERN, Host, HttpHost, ask, memory_of
from mcp_measure import DUMPS, SHOWN, WARM, ours, peers
from mcp_site import daemon, over_http
from report import ROOT, Report

FROM_DUMP = ROOT / "tests" / "features" / "upstreams" / "client" / "servers" / "from_dump.py"


def used(pid: int, host: Host) -> float:
    """The memory of a server after its tools were listed and none was called."""
    for _ in range(WARM):
        ask(host, "tools/list", {})
    return memory_of(pid)


def memory(report: Report, folder: Path) -> None:
    """Resident memory, in megabytes and against an idle daemon."""
    with daemon(folder / "idle") as one:
        idle = memory_of(one.pid)
    rows = {}
    with ours(folder) as (one, _):
        rows["daemon, 50 tools of its own, listed over MCP"] = used(
            one.pid, HttpHost(one.port, MODERN, one.token)
        )
    for name in peers():
        with over_http(name, folder) as (process, port):
            rows[f"{SHOWN[name]}, 50 tools, listed"] = used(process.pid, HttpHost(port, MODERN))
    dumps = sorted(DUMPS.glob("*.json"))
    if dumps and FROM_DUMP.exists():
        rows |= _behind(folder, dumps)
    for what, megabytes in rows.items():
        note = f"{megabytes:.0f} MB against {idle:.0f}"
        report.slower(f"memory, {what}", "an idle daemon", megabytes / idle, note=note)
    if not dumps:
        report.skip("memory, 356 upstream tools", "an idle daemon", f"{DUMPS} is not here")


def _behind(folder: Path, dumps: list[Path]) -> dict[str, float]:
    """With the tools of 31 real servers known, and then with all of them running."""
    entries = {
        file.stem: {
            "command": sys.executable,
            "args": ["-S", str(FROM_DUMP), str(file)],
            "trust": "on_first_use",
            "start_timeout": 60,
        }
        for file in dumps
    }
    rows = {}
    with daemon(folder / "behind", upstreams=entries) as one:
        for name in entries:
            one.run("upstream", "check", name, patient=True)  # some take names of ours
        rows["daemon, all upstreams running"] = memory_of(one.pid)
        host = HttpHost(one.port, MODERN, one.token)
        count = len(ask(host, "tools/list", {})["tools"])
        rows[f"daemon, all upstreams running, {count} tools listed over MCP"] = used(one.pid, host)
        home = one.home
    with daemon(folder / "again", upstreams=entries, home=home) as one:
        rows["daemon, the same tools known, no upstream started"] = memory_of(one.pid)
    return rows
