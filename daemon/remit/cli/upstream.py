"""Other MCP servers: upstream list, check, add, remove."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from remit.app.offline_upstreams import describe_servers
from remit.cli.commands import as_invoked
from remit.cli.connection import daemon_answers
from remit.cli.options import SECONDS, SharedOptions, with_options
from remit.cli.outcome import (
    NO,
    counted,
    next_step,
    print_json,
    say,
    say_hint,
)
from remit.cli.upstream_files import import_, in_force, readable, write_servers
from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, NotFoundError
from remit.features.upstreams.file import (
    change_upstreams,
    check_entries,
    inspect_upstreams,
    upstreams_path,
    without_server,
)
from remit.features.upstreams.kinds import STARTS, TRUST
from remit.model.names import did_you_mean

_NAME = 20
_TOOL = 32
_PATIENCE = 130.0
_MARKS = {"ready": "green", "failing": "red", "stopped": "red", "starting": "yellow"}
_MOST_SHOWN = 40


@click.command()
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARGS…]")
@click.option("--url", help="Where the server listens, instead of a command.")
@click.option("--env", multiple=True, help="A variable of its process, as NAME=VALUE.")
@click.option("--secret-env", multiple=True, help="The same by the name of a secret: NAME=SECRET.")
@click.option("--header", multiple=True, help="A header, as NAME=VALUE; with --url.")
@click.option("--secret-header", multiple=True, help="The same by a secret: NAME=SECRET.")
@click.option("--include", multiple=True, help="Let only these tools in; a * may end it.")
@click.option("--exclude", multiple=True, help="Never let these tools in.")
@click.option("--trust", type=click.Choice(TRUST), help="Who trusts new tools; review.")
@click.option("--start", type=click.Choice(STARTS), help="When it is started; lazy.")
@click.option("--timeout", type=SECONDS, help="Seconds for one call; 60.")
@click.option("--cwd", help="The folder in which it runs.")
@click.option("--replace", is_flag=True, help="Take the place of a server of the same name.")
@with_options
def add(
    shared: SharedOptions, name: str, command: tuple[str, ...], *, replace: bool, **given: Any
) -> None:
    """Write a server into upstreams.yaml; comments and everything else in it stay."""
    settings = shared.servers()
    entry = _entry(command, given)
    warnings = check_entries({name: entry})
    done = write_servers(settings, {name: entry}, replace=replace)
    secrets = sorted(
        {*_pairs(given["secret_env"]).values(), *_pairs(given["secret_header"]).values()}
    )
    report = {"name": name, "file": str(upstreams_path(settings)), "secrets": secrets, **done}
    if shared.as_json:
        print_json(report | {"warnings": [_plain(problem) for problem in warnings]})
        return
    for problem in warnings:
        click.echo(
            f"{click.style('warning: ', fg='yellow')}{problem.message} [{problem.code}]", err=True
        )
        say_hint(problem.hint, err=True)
    say(f"{name} is in {report['file']}")
    _say_secrets(secrets)
    say(as_invoked(report["message"]))
    next_step("reload" if report["needs_reload"] else f"upstream check {name}")


def _plain(problem: Any) -> dict[str, str]:
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}


def _entry(command: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a server, in the order in which people write them."""
    if bool(command) == bool(given["url"]):
        raise click.UsageError("name either a command, after --, or --url")
    _refuse_misplaced(given, by_url=bool(given["url"]))
    entry: dict[str, Any] = {"command": command[0]} if command else {"url": given["url"]}
    if command[1:]:
        entry["args"] = list(command[1:])
    for key, option in (("env", "env"), ("headers", "header")):
        if values := _values(given[option], given[f"secret_{option}"]):
            entry[key] = values
    if given["cwd"]:
        entry["cwd"] = _folder(given["cwd"])
    for key in ("include", "exclude", "trust", "start", "timeout"):
        if value := given[key]:
            entry[key] = list(value) if isinstance(value, tuple) else value
    return entry


def _folder(given: str) -> str:
    """From here, unless it starts at a home: a file elsewhere would start it elsewhere."""
    return given if given.startswith("~") else str(Path(given).absolute())


def _values(plain: Iterable[str], secret: Iterable[str]) -> dict[str, Any]:
    shown, hidden = _pairs(plain), _pairs(secret)
    if twice := sorted(shown.keys() & hidden.keys()):
        raise click.UsageError(f"{twice[0]} has a value and a secret: keep one of them")
    return shown | {name: {"secret": value} for name, value in hidden.items()}


def _refuse_misplaced(given: Mapping[str, Any], *, by_url: bool) -> None:
    wrong = ("env", "secret_env", "cwd") if by_url else ("header", "secret_header")
    for name in wrong:
        if given[name]:
            other = "a command" if by_url else "--url"
            raise click.UsageError(f"--{name.replace('_', '-')} belongs to {other}")


def _pairs(texts: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            # The text may be a secret that somebody forgot to name.
            raise click.UsageError("a variable or header is written as NAME=VALUE")
        if name in found:
            raise click.UsageError(f"{name} is given twice")
        found[name] = value
    return found


@click.command()
@click.argument("name")
@with_options
def remove(shared: SharedOptions, name: str) -> None:
    """Take a server out of upstreams.yaml; what was decided about its tools is kept."""
    settings = shared.servers()
    path = upstreams_path(settings)
    there = [one.name for one in readable(path).upstreams]
    if name not in there:
        hint = did_you_mean(name, there) or "remit upstream list"
        raise NotFoundError(f"there is no server {name!r} in {path}", hint=hint)
    change_upstreams(path, lambda text: without_server(text, name, path))
    report = {"name": name, "file": str(path), **in_force(settings, [], gone=[name])}
    if shared.as_json:
        print_json(report)
        return
    say(f"{name} is no longer in {path}")
    say(as_invoked(report["message"]))
    next_step("reload" if report["needs_reload"] else "upstream list")


def _say_secrets(names: list[str]) -> None:
    if names:
        say(f"  set where the daemon is started: {', '.join(names)}  (or NAME_FILE with a path)")


@click.command("list")
@with_options
def list_(shared: SharedOptions) -> None:
    """List the upstream servers: of the daemon, or of the files when none runs."""
    settings = shared.servers()
    answer = _listed(settings)
    if shared.as_json:
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
@with_options
def check(shared: SharedOptions, names: tuple[str, ...]) -> None:
    """Ask servers for their tools, starting them if need be, and tell what is wrong; all of them.

    Without a daemon each is started here, once, and nothing is kept.
    """
    settings = shared.servers()
    reports = _checked(settings, names)
    fine = not any(_is_wrong(report) for report in reports)
    if shared.as_json:
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


@click.group()
def upstream() -> None:
    """Let in the tools of other MCP servers: list, check, add, remove, import."""


for _command in (list_, check, add, remove, import_):
    upstream.add_command(_command)
