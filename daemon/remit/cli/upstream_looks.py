"""How outside servers are: upstream list, upstream check."""

import sys
from typing import Any

import click

from remit.cli.connection import daemon_answers
from remit.cli.options import Asked, asked
from remit.cli.outcome import NO, counted, next_step, print_json, say
from remit.config.home import Home
from remit.config.lock import running_pid
from remit.config.settings_table import Settings
from remit.config.upstream_file import inspect_upstreams, upstreams_path
from remit.errors import NotFoundError
from remit.model.place import DefinitionError
from remit.model.suggest import did_you_mean

_NAME = 20
_TOOL = 32
_PATIENCE = 130.0
_MARKS = {"ready": "green", "failing": "red", "stopped": "red", "starting": "yellow"}
_MOST_SHOWN = 40


@click.command("list")
@asked
def list_(ask: Asked) -> None:
    """List the outside servers: of the daemon, or of the files when none runs."""
    settings = ask.servers()
    answer = _listed(settings)
    if ask.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        _say_server(item)
    for problem in answer["problems"]:
        place = f"{problem['file']}:{problem['line']}:{problem['column']}"
        say(click.style(f"{place}: {problem['message']} [{problem['code']}]", fg="yellow"))
    waiting = sum(item.get("pending", 0) for item in answer["items"])
    say(f"{counted(answer['total'], 'server')}, {counted(waiting, 'tool')} to review")
    if not answer["items"]:
        next_step("upstream add NAME -- COMMAND")
    else:
        next_step("upstream check" if not waiting else _after_check(settings, waiting))


def _listed(settings: Settings) -> dict[str, Any]:
    with daemon_answers(settings) as daemon:
        if daemon is not None:
            return daemon.upstreams()
    from remit.app.upstream_looks import describe_servers  # noqa: PLC0415 - pins, only without one

    return describe_servers(settings)


def _say_server(item: dict[str, Any]) -> None:
    counts = [f"{_count(item, status)} {status}" for status in ("trusted", "pending", "rejected")]
    more = [f"{item['restarts']} restarts"] if item.get("restarts") else []
    state = click.style(f"{item['state']:9}", fg=_MARKS.get(item["state"]))
    say(f"{item['name']:{_NAME}} {state} {', '.join(counts + more)}")
    for key in ("reason", "problem", "last_error"):
        if item.get(key):
            say(f"{'':{_NAME}} {key.replace('_', ' ')}: {item[key]}")
            return


def _count(item: dict[str, Any], status: str) -> int:
    return sum(tool["status"] == status for tool in item["tools"])


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@asked
def check(ask: Asked, names: tuple[str, ...]) -> None:
    """Ask servers for their tools, starting them if need be, and tell what is wrong; all of them.

    Without a daemon each is started here, once, and nothing is kept.
    """
    settings = ask.servers()
    reports = _checked(settings, names)
    fine = not any(_is_wrong(report) for report in reports)
    if ask.as_json:
        print_json({"ok": fine, "servers": reports})
    else:
        for report in reports:
            _say_checked(report)
        waiting = sum(len(report["waiting"]) for report in reports)
        say(f"{counted(len(reports), 'server')}, {counted(waiting, 'tool')} to review")
        next_step(_after_check(settings, waiting))
    sys.exit(0 if fine else NO)


def _after_check(settings: Settings, waiting: int) -> str:
    if running_pid(Home(settings.home)) is None:
        return "serve"  # decisions about tools are made with a daemon
    return "review list --kind tool" if waiting else "upstream list"


def _checked(settings: Settings, names: tuple[str, ...]) -> list[dict[str, Any]]:
    with daemon_answers(settings) as daemon:
        if daemon is not None:
            chosen = names or tuple(item["name"] for item in daemon.upstreams()["items"])
            return [daemon.check_upstream(name, timeout=_PATIENCE) for name in chosen]
    path = upstreams_path(settings)
    found = inspect_upstreams(path)
    if found.errors:
        raise DefinitionError(found.errors)
    there = {one.name: one for one in found.upstreams}
    for name in names:
        if name not in there:
            hint = did_you_mean(name, there) or "remit upstream list"
            raise NotFoundError(f"there is no server {name!r} in {path}", hint=hint)
    chosen_here = tuple(there[name] for name in dict.fromkeys(names)) or found.upstreams
    if not chosen_here:
        return []
    from remit.app.upstream_check import check_servers  # noqa: PLC0415 - anyio, mcp and the scanner

    return check_servers(settings, chosen_here)


def _is_wrong(report: dict[str, Any]) -> bool:
    """A tool that only waits because it is new is no fault."""
    return not report["ok"] or any(_doubts(tool) for tool in report["tools"])


def _doubts(tool: dict[str, Any]) -> str:
    reason: str = tool["reason"]
    return "" if tool["status"] != "pending" or reason == "it is new" else reason


def _say_checked(report: dict[str, Any]) -> None:
    if not report["ok"]:
        say(f"{report['name']:{_NAME}} {click.style('failed', fg='red')}: {report['error']}")
        return
    server = report.get("server") or {}
    named = " ".join(filter(None, (server.get("name"), server.get("version"))))
    facts = ", ".join(filter(None, (f"{report['found']} tools", report["protocol"], named)))
    say(f"{report['name']:{_NAME}} {click.style('answers', fg='green')}: {facts}")
    shown = [tool for tool in report["tools"] if tool["status"] != "gone"]
    for tool in shown[:_MOST_SHOWN]:
        colour = "yellow" if tool["status"] == "pending" else None
        status = click.style(f"{tool['status']:9}", fg=colour)
        why = f"  {tool['reason']}" if tool["reason"] else ""
        say(f"  {tool['tool']:{_TOOL}} {status} {tool['effect'] or '':12}{why}".rstrip())
    if len(shown) > _MOST_SHOWN:
        say(f"  … and {len(shown) - _MOST_SHOWN} more: --json shows all")
    if report.get("left_out"):
        say(click.style(f"  {report['left_out']} tools cannot be taken over", fg="yellow"))
        for one in report["left_out_because"]:
            say(f"    {one['tool']}: {one['reason']}")
