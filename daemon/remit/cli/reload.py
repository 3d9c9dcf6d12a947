"""Putting edited definitions in force: reload, apply."""

import sys
from pathlib import Path
from typing import Any

import click

from remit.app.workbench import definition_paths, open_workbench, source_of_daemon
from remit.cli.connection import problems_in
from remit.cli.edits import Folder, in_folder, say_plan
from remit.cli.options import Asked, asked
from remit.cli.outcome import NO, counted, next_step, print_json, say, say_problems, say_source
from remit.config.settings.table import Settings
from remit.errors import HomeError, NotFoundError, RemitError


@click.command()
@asked
def reload(ask: Asked) -> None:
    """Let the daemon read its definitions again, and show what changed.

    All or nothing: a mistake anywhere leaves in force what is in force, and exits with 2.
    """
    settings = ask.definitions()
    report = _reload(settings)
    report |= {"source": source_of_daemon(settings, report["revision"])}
    if ask.as_json:
        print_json(report)
    else:
        _say_done(report)


@click.command()
@click.argument("folder", required=False, type=Folder, metavar="[DIR]")
@click.option("--yes", is_flag=True, help="Do not ask.")
@asked
def apply(ask: Asked, folder: Path | None, *, yes: bool) -> None:
    """Show what the edited definitions change, ask, and put them in force.

    With DIR, the files that the daemon runs on are replaced by those of DIR, after a check. The old
    ones are kept beside them, in a folder that can be applied again.
    """
    from remit.cli.connection import plan_by_daemon  # noqa: PLC0415 - only with a daemon

    settings = ask.definitions()
    targets = _targets(settings) if folder else None
    if folder is not None:
        open_workbench(in_folder(settings, folder))  # every mistake, with its line
    report = plan_by_daemon(settings, folder)
    if not ask.as_json:
        say_plan(report, then="")
    if not yes and not _agreed(as_json=ask.as_json):
        say("nothing was changed")
        sys.exit(NO)
    backup = _replace_all(folder, *targets) if folder and targets else None
    try:
        done = _reload(settings)
    except RemitError:
        if backup is not None:
            click.echo(f"not in force; the old files are in {backup}", err=True)
        raise
    if ask.as_json:
        # A daemon that watches may have been faster: what was planned is what was done.
        print_json(done | report | {"backup": None if backup is None else str(backup)})
        return
    say(f"in force: revision {done['revision']}")
    if backup is not None:
        say(f"the old files are in {backup}")
    next_step(f"apply {backup}   (to go back)" if backup else "plan   (after the next edit)")


def _reload(settings: Settings) -> Any:
    from remit.cli.connection import connected  # noqa: PLC0415 - zmq, only with a daemon

    with connected(settings) as remit:
        return remit.call("config:reload")


def _say_done(report: dict[str, Any]) -> None:
    if report["changed"]:
        say_plan(report, then="")
        say(f"in force: revision {report['revision']}")
    else:
        say(f"definitions: nothing changed, revision {report['revision']} stays in force")
    if not report["changed"]:  # a plan has told it
        say_source(report)
    wrong = [key for key, title in _PARTS.items() if _say_part(title, report[key])]
    next_step("cards check" if "cards" in wrong else "plan   (after the next edit)")


_PARTS = {"upstreams": "outside servers", "cards": "cards", "skills": "skills and manifests"}


def _say_part(title: str, part: dict[str, Any]) -> bool:
    """One line about one kind of file; answers whether something is wrong with it."""
    told = [
        f"{what} {', '.join(part[what])}" for what in ("added", "changed", "removed") if part[what]
    ]
    wrong = [counted(len(part["problems"]), "problem")] if part["problems"] else []
    say(f"{title}: {'; '.join([*(told or ['nothing changed']), *wrong])} ({part['total']} in all)")
    say_problems(problems_in(part["problems"], "warning"))
    return bool(wrong)


def _agreed(*, as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here: say --yes")
    return click.confirm("Put this in force?", default=False)


def _targets(settings: Settings) -> tuple[Path, Path]:
    """The files that the daemon runs on, behind all links.

    Raises:
        NotFoundError: it runs on the shipped starter, which belongs to the installation.
    """
    catalogue, compositions = definition_paths(settings)
    if settings.catalogue is None or compositions is None:
        raise NotFoundError(
            "the daemon runs on the shipped definitions; these are not replaced",
            hint="serve your own: remit serve --catalogue DIR/capabilities.yaml",
        )
    return catalogue.resolve(), compositions.resolve()


def _replace_all(folder: Path, catalogue: Path, compositions: Path) -> Path:
    """Put the files of a folder in the place of others; answers where the old ones are.

    Everything is copied first and then renamed, so a run that is cut off leaves whole files; when a
    rename fails, those before it are taken back.
    """
    import shutil  # noqa: PLC0415 - only this command writes files
    from contextlib import ExitStack  # noqa: PLC0415

    backup = _fresh(catalogue.parent)
    (backup / "new").mkdir(parents=True)
    shutil.copyfile(folder / "capabilities.yaml", backup / "new" / "capabilities.yaml")
    shutil.copytree(folder / "compositions", backup / "new" / "compositions")
    steps = (
        (compositions, backup / "compositions"),
        (backup / "new" / "compositions", compositions),
        (backup / "new" / "capabilities.yaml", catalogue),
    )
    shutil.copy2(catalogue, backup / "capabilities.yaml")
    try:
        with ExitStack() as undo:
            for source, target in steps:
                source.replace(target)
                undo.callback(target.replace, source)
            undo.pop_all()
    except OSError as error:
        message = f"{error.filename2 or error.filename} cannot be replaced: {error.strerror}"
        raise HomeError(message, hint="everything is as it was") from error
    (backup / "new").rmdir()
    return backup


def _fresh(folder: Path) -> Path:
    from datetime import UTC, datetime  # noqa: PLC0415 - only this command needs a date

    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    names = (folder / f"remit-backup-{stamp}-{number}" for number in range(1, 1000))
    return next(path for path in names if not path.exists())
