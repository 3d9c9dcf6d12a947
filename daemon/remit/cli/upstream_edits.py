"""Which outside servers there are: upstream add, upstream remove."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from remit.cli.invocation import as_invoked
from remit.cli.options import SECONDS, Asked, asked
from remit.cli.outcome import (
    next_step,
    print_json,
    say,
    say_hint,
)
from remit.cli.upstream_writing import in_force, readable, write_servers
from remit.config.upstream_file import STARTS, TRUST, upstreams_path
from remit.errors import NotFoundError
from remit.model.suggest import did_you_mean


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
@asked
def add(ask: Asked, name: str, command: tuple[str, ...], *, replace: bool, **given: Any) -> None:
    """Write a server into upstreams.yaml; comments and everything else in it stay."""
    from remit.config.upstream_edit import check_entries  # noqa: PLC0415 - only for edits

    settings = ask.servers()
    entry = _entry(command, given)
    warnings = check_entries({name: entry})
    done = write_servers(settings, {name: entry}, replace=replace)
    secrets = sorted(
        {*_pairs(given["secret_env"]).values(), *_pairs(given["secret_header"]).values()}
    )
    report = {"name": name, "file": str(upstreams_path(settings)), "secrets": secrets, **done}
    if ask.as_json:
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
@asked
def remove(ask: Asked, name: str) -> None:
    """Take a server out of upstreams.yaml; what was decided about its tools is kept."""
    from remit.config.upstream_edit import without_server  # noqa: PLC0415 - only for edits
    from remit.config.upstream_store import change_upstreams  # noqa: PLC0415

    settings = ask.servers()
    path = upstreams_path(settings)
    there = [one.name for one in readable(path).upstreams]
    if name not in there:
        hint = did_you_mean(name, there) or "remit upstream list"
        raise NotFoundError(f"there is no server {name!r} in {path}", hint=hint)
    change_upstreams(path, lambda text: without_server(text, name, path))
    report = {"name": name, "file": str(path), **in_force(settings, [], gone=[name])}
    if ask.as_json:
        print_json(report)
        return
    say(f"{name} is no longer in {path}")
    say(as_invoked(report["message"]))
    next_step("reload" if report["needs_reload"] else "upstream list")


def _say_secrets(names: list[str]) -> None:
    if names:
        say(f"  set where the daemon is started: {', '.join(names)}  (or NAME_FILE with a path)")
