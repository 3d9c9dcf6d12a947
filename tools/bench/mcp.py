"""What MCP through remit costs: `python tools/bench/mcp.py [--json FILE] [--only PART ...]`.

The same 50 tools served by a daemon as ordinary events, by the bare `mcp` library and by fastmcp;
then the bare server as an upstream behind remit. Everything runs in one run, in processes of its
own, in short rounds that take turns; the best round of each counts. CPU is that of all processes
that serve.
"""

import sys

sys.path.append(sys.path.pop(0))  # this file's name must not stand for the library's `mcp`

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path

from mcp_hosts import ERAS, HttpHost, StdioHost
from mcp_measure import Subject, compare, ours, peers, questions
from mcp_memory import memory
from mcp_proxied import proxied
from mcp_site import agent_command, over_http, over_streams, peer_command
from report import Report


def served(report: Report, folder: Path) -> None:
    """Over HTTP."""
    with ExitStack() as stack:
        one, listed = stack.enter_context(ours(folder))
        others = {name: stack.enter_context(over_http(name, folder)) for name in peers()}
        for era in ERAS:
            subjects = {"remit": Subject(HttpHost(one.port, era, one.token), one.pid)}
            for name, (process, port) in others.items():
                subjects[name] = Subject(HttpHost(port, era), process.pid)
            for label, (asked, judged) in questions(listed).items():
                what = f"HTTP, {era}, {label}"
                compare(report, what, subjects, asked, judged=judged)


def streams(report: Report, folder: Path) -> None:
    """Over standard streams: remit's side is two processes, `remit mcp` and the daemon."""
    with ExitStack() as stack:
        one, listed = stack.enter_context(ours(folder))
        for era in ERAS:
            with ExitStack() as inner:
                front = inner.enter_context(over_streams(agent_command(one.home), folder))
                subjects = {"remit": Subject(StdioHost(front, era), front.pid, one.pid)}
                for name in peers():
                    command = peer_command(name, folder, "stdio")
                    process = inner.enter_context(over_streams(command, folder))
                    subjects[name] = Subject(StdioHost(process, era), process.pid)
                for label, (asked, judged) in questions(listed).items():
                    what = f"stdio, {era}, {label}"
                    compare(report, what, subjects, asked, judged=judged)


PARTS = {"served": served, "streams": streams, "proxied": proxied, "memory": memory}


def main() -> int:
    """Measure everything against everything."""
    parser = argparse.ArgumentParser(description="what MCP through remit costs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts"
    )
    asked = parser.parse_args()
    report = Report("MCP: lists and calls")
    for part in asked.only:
        with tempfile.TemporaryDirectory(prefix="mcp-") as folder:
            PARTS[part](report, Path(folder))
    return report.finish(asked.json)


if __name__ == "__main__":
    sys.exit(main())
