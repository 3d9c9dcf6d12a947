"""Whether a daemon can run here: doctor."""

import sys

import click

from remit.app.doctor.daemon import Check
from remit.app.doctor.report import examine
from remit.cli.commands import as_invoked
from remit.cli.options import SharedOptions, with_definition_options
from remit.cli.outcome import NO, next_step, print_json, say
from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid

_MARKS = {"fine": ("ok", "green"), "warning": ("warn", "yellow"), "broken": ("BAD", "red")}


@click.command()
@with_definition_options
def doctor(shared: SharedOptions) -> None:
    """Find what is wrong with this installation, and say how to repair it."""
    settings = shared.settings()
    checks = examine(settings)
    healthy = all(check.state != "broken" for check in checks)
    if shared.as_json:
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
