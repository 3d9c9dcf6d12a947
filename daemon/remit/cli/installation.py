"""Looking after an installation: config, doctor, completion."""

import os
import sys
from pathlib import Path

import click

from remit.app.doctor.look import Check
from remit.app.doctor.report import examine
from remit.cli.invocation import as_invoked
from remit.cli.options import Asked, asked, asked_about_definitions
from remit.cli.outcome import NO, next_step, print_json, say, say_hint
from remit.config.settings.home import Home
from remit.config.settings.lock import mismatches, other_settings, plain, running_pid, served_here
from remit.config.settings.table import SETTINGS
from remit.errors import NotFoundError

_MARKS = {"fine": ("ok", "green"), "warning": ("warn", "yellow"), "broken": ("BAD", "red")}


@click.command()
@asked
def config(ask: Asked) -> None:
    """Show every setting, its value, and where the value comes from."""
    settings = ask.settings()
    served = served_here(Home(settings.home))
    rows = []
    for row in SETTINGS:
        entry = {
            "name": row.name,
            "value": plain(getattr(settings, row.name)),
            "origin": str(settings.origins[row.name]),
            "doc": row.doc,
            "variable": row.variable,
        }
        if served is not None and row.name in served.settings:
            entry["daemon"] = served.settings[row.name]
        rows.append(entry)
    differs = [str(one) for one in (*mismatches(settings), *other_settings(settings))]
    if ask.as_json:
        print_json({"settings": rows, "differs": differs})
        sys.exit(NO if differs else 0)
    for entry in rows:
        shown = "-" if entry["value"] in (None, "", []) else str(entry["value"])
        say(f"{entry['name']:18} {shown:40} {click.style(entry['origin'], dim=True)}")
        if "daemon" in entry and entry["daemon"] != entry["value"]:
            runs_on = entry["daemon"] or "the default"
            say(click.style(f"{'':18} {runs_on!s:40} the running daemon", fg="yellow"))
    for one in differs:
        click.echo(f"{click.style('error: ', fg='red')}{one} [invalid_settings]", err=True)
    if differs:
        say_hint("leave this folder, or start the daemon again with these", err=True)
    next_step("doctor")
    sys.exit(NO if differs else 0)


@click.command()
@asked_about_definitions
def doctor(ask: Asked) -> None:
    """Find what is wrong with this installation, and say how to repair it."""
    settings = ask.settings()
    checks = examine(settings)
    healthy = all(check.state != "broken" for check in checks)
    if ask.as_json:
        print_json({"ok": healthy, "checks": [check.to_json() for check in checks]})
    else:
        for check in checks:
            _say_check(check)
        say(_verdict(checks))
        runs = running_pid(Home(settings.home)) is not None
        next_step(("agents" if runs else "serve") if healthy else "doctor")
    sys.exit(0 if healthy else NO)


def _verdict(checks: list[Check]) -> str:
    if any(check.state == "broken" for check in checks):
        return "repair what is marked BAD, then run doctor again"
    told = any(check.state == "warning" for check in checks)
    return "nothing is broken; look at what is marked warn" if told else "all is well"


def _say_check(check: Check) -> None:
    word, colour = _MARKS[check.state]
    say(f"{click.style(f'{word:5}', fg=colour)}{check.name:14} {check.message}")
    if check.repair:
        say(f"     repair: {as_invoked(check.repair)}")


@click.command()
@click.argument("shell", required=False, type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str | None) -> None:
    """Print the completion script of SHELL; the one you use when absent."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    from remit.cli.completion import RemitBash  # noqa: PLC0415
    from remit.cli.main import COMPLETE, remit  # noqa: PLC0415

    name = shell or Path(os.environ.get("SHELL", "bash")).name
    found = RemitBash if name == "bash" else get_completion_class(name)
    if found is None:
        raise NotFoundError(f"there is no completion for {name!r}", hint="bash, zsh or fish")
    click.echo(found(remit, {}, "remit", COMPLETE).source())
    if sys.stdout.isatty():
        click.echo(as_invoked(f'# use it: eval "$(remit completion {name})"'), err=True)
