"""`remit scan`: look for poisoned descriptions, without sending anything anywhere."""

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit import __version__
from remit.app.workbench import source_of_files
from remit.cli.options import Asked, asked
from remit.cli.outcome import NO, counted, next_step, print_json, say, say_source

if TYPE_CHECKING:
    from remit.app.scan import Scanned
    from remit.features.scan.alarms import Alarm, Level

_STDOUT = "-"
_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


@click.command()
@click.argument("path", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--sarif",
    is_flag=False,
    flag_value=_STDOUT,
    metavar="[FILE]",
    help="Answer as SARIF 2.1.0, or write it to a file whose name ends in .sarif.",
)
@click.option(
    "--min-severity",
    type=click.Choice(["error", "warning", "note"]),
    default="warning",
    show_default=True,
    help="Tell what is at least as bad as this; exit 1 when there is something.",
)
@asked
def scan(ask: Asked, path: tuple[Path, ...], *, sarif: str | None, min_severity: "Level") -> None:
    """Scan what models are shown for text that was written to steer them.

    Without PATH: events, definitions, cards, skills, and the tools of outside servers. With PATH:
    only these folders of skills, answers to tools/list, and mcpServers files of hosts.
    """
    _check_sarif(ask, sarif)
    from remit.app.scan import scan_installation, scan_paths  # noqa: PLC0415 - the scanner
    from remit.features.scan.alarms import at_least  # noqa: PLC0415 - the same

    source = None
    if path:
        found = scan_paths(path)
    else:
        settings = ask.definitions()
        found, source = scan_installation(settings), source_of_files(settings)
    told = at_least(found.alarms, min_severity)
    if sarif is not None:
        _give_sarif(told, sarif)
    if ask.as_json:
        print_json(_answer(found, told))
    elif sarif != _STDOUT:
        _say(found, told)
        if source is not None:
            say_source({"source": source})
        next_step(_next(found, told, path))
    sys.exit(NO if told else 0)


def _check_sarif(ask: Asked, sarif: str | None) -> None:
    if sarif == _STDOUT and ask.as_json:
        raise click.UsageError("--json and --sarif both write to the screen; give --sarif a FILE")
    if sarif not in (None, _STDOUT) and not str(sarif).endswith((".sarif", ".sarif.json")):
        # The word behind --sarif may have been meant as a PATH, and would be written over.
        message = f"{sarif!r} does not end in .sarif; write PATHs before --sarif, or --sarif=-"
        raise click.BadParameter(message, param_hint="--sarif")


def _give_sarif(told: "tuple[Alarm, ...]", target: str) -> None:
    from remit.features.scan.sarif import sarif  # noqa: PLC0415 - only this form needs it

    document = sarif(told, version=__version__)
    if target == _STDOUT:
        print_json(document)
        return
    import msgspec  # noqa: PLC0415 - the same

    encoded = msgspec.json.format(msgspec.json.encode(document), indent=2)
    try:
        Path(target).write_bytes(encoded + b"\n")
    except OSError as error:
        message = f"{target!r} cannot be written: {error.strerror or error}"
        raise click.BadParameter(message, param_hint="--sarif") from error


def _answer(found: "Scanned", told: "tuple[Alarm, ...]") -> dict[str, object]:
    return {
        "ok": not told,
        "findings": [one.to_json() for one in told],
        "counts": found.counts(),
        "scanned": found.subjects,
    }


def _say(found: "Scanned", told: "tuple[Alarm, ...]") -> None:
    for file, alarms in groupby(told, key=lambda one: one.place.file):
        say(click.style(file, bold=True))
        for alarm in alarms:
            _say_alarm(alarm)
        say()
    counts = ", ".join(counted(count, word) for word, count in found.counts().items())
    looked = ", ".join(counted(count, word) for word, count in found.subjects.items())
    say(f"{counts}; looked at {looked or 'nothing'}")


def _say_alarm(alarm: "Alarm") -> None:
    level = click.style(alarm.severity, fg=_COLOURS[alarm.severity])
    say(f"  {alarm.place}: {level}: {alarm.message} [{alarm.rule}]")
    say(f"      {alarm.subject}: {alarm.excerpt}")
    say(f"      repair: {alarm.repair}")


def _next(found: "Scanned", told: "tuple[Alarm, ...]", paths: tuple[Path, ...]) -> str:
    import shlex  # noqa: PLC0415 - 5 ms, and only people get here

    again = shlex.join(["scan", *map(str, paths)])
    if not told:
        return f"{again} --min-severity note" if found.alarms else "check"
    kind, _, name = told[0].subject.partition(":")
    waits = kind == "card" or (kind == "tool" and "/" in name)
    return f"review list --kind {kind}" if waits and not paths else f"{again} --sarif=scan.sarif"
