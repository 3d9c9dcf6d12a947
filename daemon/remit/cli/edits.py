"""What an edit of definitions changes, and putting it in force: plan, reload, apply."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from remit.app.workbench import (
    definition_files,
    definition_paths,
    open_workbench,
    settings_with,
    source_of_daemon,
)
from remit.cli.connection import connected, problems_in
from remit.cli.options import SharedOptions, with_options
from remit.cli.outcome import (
    NO,
    counted,
    limit_text,
    next_step,
    print_json,
    say,
    say_problems,
    say_source,
)
from remit.config.definitions.files import Files, parse_definitions
from remit.config.settings.home import Home
from remit.config.settings.lock import running_pid
from remit.config.settings.table import Settings
from remit.errors import DefinitionError, HomeError, NotFoundError, RemitError
from remit.kernel.authority.plans import plan_between
from remit_client.sync import Client

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_TOLD = {
    "approval_removed": "no longer waits for approval",
    "approval_added": "waits for approval at each call",
    "review_added": "waits for a security review",
    "review_removed": "no longer waits for a security review",
    "denied_removed": "no longer denied, so its agents can be given it",
    "denied_added": "denied, so no agent of it can be given it",
    "tools_shown": "becomes a tool",
    "tools_hidden": "is no tool any more",
    "tools_changed": "is described otherwise in tool lists",
    "pinned_added": "listed whatever the exposure",
    "pinned_removed": "listed as the exposure says",
}
"""What a plan tells beside what comes and goes."""
_TOOLS = ("tools_shown", "tools_hidden")
_PARTS = {"upstreams": "upstream servers", "cards": "cards", "skills": "skills and manifests"}


@click.command()
@click.option("--from", "before", type=_FOLDER, help="Folder of the old definitions.")
@click.option(
    "--to", "after", type=_FOLDER, help="Folder of the new ones; default: the configured."
)
@click.option(
    "--events", type=click.Path(path_type=Path), help="Event names instead of the handlers."
)
@with_options
def plan(
    shared: SharedOptions, *, before: Path | None, after: Path | None, events: Path | None
) -> None:
    """Show what an edit would grant and take away.

    A folder holds capabilities.yaml and compositions/.
    Without --from, the files that the daemon runs on are compared with those on disk.
    """
    # Two folders say themselves what is meant.
    settings = shared.settings() if before and after else shared.definitions()
    if before is None:
        report = _plan_by_daemon(settings, after)
    else:
        old = open_workbench(_in_folder(settings, before), events)
        new = open_workbench(_in_folder(settings, after) if after else settings, events)
        found = plan_between(new.fleet, old.catalogue, new.catalogue)
        report = {"source": new.source} | found.to_json()
    if shared.as_json:
        print_json(report)
    else:
        _say_plan(report)


def _in_folder(settings: Settings, folder: Path) -> Settings:
    """The settings with the definitions of a folder."""
    compositions = folder / "compositions"
    return settings_with(
        settings, catalogue=folder / "capabilities.yaml", compositions=compositions
    )


def _say_plan(report: dict[str, Any], then: str = "check") -> None:
    """Print a plan: who gets more first, the summary last."""
    for name, change in report["profiles"].items():
        say(click.style(name, bold=True))
        _say_rights(change)
        for limit, (old, new) in change["limits_changed"].items():
            say(click.style(f"  ~ {limit}: {limit_text(old)} → {limit_text(new)}", fg="yellow"))
        if change["exposure_changed"]:
            say(click.style(f"  ~ exposure: {' → '.join(change['exposure_changed'])}", fg="yellow"))
        if change["max_effect_changed"]:
            old, new = (effect or "none" for effect in change["max_effect_changed"])
            say(click.style(f"  ~ max effect: {old} → {new}", fg="yellow"))
        if change["trust_changed"]:
            old, new = ("on" if trusted else "off" for trusted in change["trust_changed"])
            say(click.style(f"  ~ trust: {old} → {new}", fg="yellow"))
        _say_launcher(change["launcher_changed"])
    _say_agents(report)
    summary = report["summary"]
    say(
        f"{summary['granted']} granted, {summary['revoked']} revoked in "
        f"{counted(summary['profiles'], 'profile')}; {summary['unchanged']} unchanged"
    )
    if summary["agents"]:
        more = (
            f"; {summary['agents_widened']} of them get more" if summary["agents_widened"] else ""
        )
        say(f"{counted(summary['agents'], 'living agent')} affected{more}")
    say_source(report)
    if then:
        next_step(then)


def _say_agents(report: dict[str, Any]) -> None:
    """The agents that get something else than their profile does, or whose profile goes away."""
    for name, change in report["agents"].items():
        profile = report["profiles"].get(change["profile"])
        keys = ("granted", "revoked", "tools_granted", "tools_revoked", "limits_changed")
        if profile is not None and all(change[key] == profile[key] for key in keys):
            continue  # as its profile, which is told already
        gone = ", which is removed" if change["profile_removed"] else ""
        under = f" under {change['profile']}{gone}" if change["profile"] else ""
        say(click.style(f"agent {name}{under}", bold=True))
        _say_rights(change)
        for limit, (old, new) in change["limits_changed"].items():
            say(click.style(f"  ~ {limit}: {limit_text(old)} → {limit_text(new)}", fg="yellow"))
    if report.get("agents_left_out"):
        say(f"and {report['agents_left_out']} agents more; --json has the first ones whole")


def _say_rights(change: dict[str, Any]) -> None:
    for key, sign, colour in (
        ("granted", "+", "green"),
        ("tools_granted", "+", "green"),
        ("revoked", "-", "red"),
        ("tools_revoked", "-", "red"),
    ):
        for entry in change[key]:
            say(click.style(f"  {sign} {entry}", fg=colour))
    told = {*change["granted"], *change["revoked"]}  # and with them their tools
    for key, what in _TOLD.items():
        for entry in change[key]:
            if entry not in told or key not in _TOOLS:
                say(click.style(f"  ~ {entry}: {what}", fg="yellow"))


def _say_launcher(change: Sequence[dict[str, Any] | None]) -> None:
    if change:
        old, new = (_command(launcher) for launcher in change)
        say(click.style(f"  ~ starts: {old} → {new}", fg="yellow"))


def _command(launcher: dict[str, Any] | None) -> str:
    if launcher is None:
        return "nothing"
    return shlex.join([launcher.get("ready") or launcher["command"], *launcher.get("args", ())])


@click.command()
@with_options
def reload(shared: SharedOptions) -> None:
    """Let the daemon read its definitions again, and show what changed.

    All or nothing: a mistake anywhere leaves in force what is in force, and exits with 2.
    """
    settings = shared.definitions()
    report = _reload(settings)
    report |= {"source": source_of_daemon(settings, report["revision"])}
    if shared.as_json:
        print_json(report)
    else:
        _say_done(report)


@click.command()
@click.argument("folder", required=False, type=_FOLDER, metavar="[DIR]")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_options
def apply(shared: SharedOptions, folder: Path | None, *, yes: bool) -> None:
    """Show what the edited definitions change, ask, and put them in force.

    With DIR, the files that the daemon runs on are replaced by those of DIR, after a check. The old
    ones are kept beside them, in a folder that can be applied again.
    """
    settings = shared.definitions()
    targets = _targets(settings) if folder else None
    if folder is not None:
        open_workbench(_in_folder(settings, folder))  # every mistake, with its line
    report = _plan_by_daemon(settings, folder)
    if not shared.as_json:
        _say_plan(report, then="")
    if not yes and not _agreed(as_json=shared.as_json):
        say("nothing was changed")
        sys.exit(NO)
    backup = _replace_all(folder, *targets) if folder and targets else None
    try:
        done = _reload(settings)
    except RemitError:
        if backup is not None:
            click.echo(f"not in force; the old files are in {backup}", err=True)
        raise
    if shared.as_json:
        # A daemon that watches may have been faster: what was planned is what was done.
        print_json(done | report | {"backup": None if backup is None else str(backup)})
        return
    say(f"in force: revision {done['revision']}")
    if backup is not None:
        say(f"the old files are in {backup}")
    next_step(f"apply {backup}   (to go back)" if backup else "plan   (after the next edit)")


def _reload(settings: Settings) -> Any:

    with connected(settings) as remit:
        return remit.call("config:reload")


def _say_done(report: dict[str, Any]) -> None:
    if report["changed"]:
        _say_plan(report, then="")
        say(f"in force: revision {report['revision']}")
    else:
        say(f"definitions: nothing changed, revision {report['revision']} stays in force")
    if not report["changed"]:  # a plan has told it
        say_source(report)
    wrong = [key for key, title in _PARTS.items() if _say_part(title, report[key])]
    next_step("cards check" if "cards" in wrong else "plan   (after the next edit)")


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
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    names = (folder / f"remit-backup-{stamp}-{number}" for number in range(1, 1000))
    return next(path for path in names if not path.exists())


def _plan_by_daemon(settings: Settings, folder: Path | None) -> Any:
    """Compare what the daemon runs on with edited files.

    Raises:
        NotFoundError: no daemon runs, so there is nothing to compare with.
    """
    if running_pid(Home(settings.home)) is None:
        raise NotFoundError(
            "no daemon runs here, so there is nothing to compare with",
            hint="name the old definitions: remit plan --from OLD --to NEW",
        )
    if folder is None:
        with connected(settings) as remit:
            if remit.allowed("config:plan"):
                return _with_source(settings, remit, remit.call("config:plan"))
    else:
        settings = settings_with(
            settings,
            catalogue=folder / "capabilities.yaml",
            compositions=folder / "compositions",
        )
    return _plan_of(settings, definition_files(settings))


def _plan_of(settings: Settings, files: "Files") -> Any:
    """Let the daemon compile files that it has not got, against the events that it has."""
    errors = [problem for problem in parse_definitions(files).problems if problem.is_error]
    if errors:
        raise DefinitionError(files.illustrate(errors))
    names = [files.catalogue, *files.compositions]
    texts = {name: files.contents[name].decode("utf-8-sig") for name in names}
    data = {
        "catalogue": texts.pop(files.catalogue),
        "compositions": {Path(name).name: text for name, text in texts.items()},
        "complete": True,
    }
    with connected(settings) as remit:
        return _with_source(settings, remit, remit.call("composition:plan", data))


def _with_source(settings: Settings, remit: "Client", report: dict[str, Any]) -> dict[str, Any]:

    revision = remit.call("system:health")["revision"]
    return {"source": source_of_daemon(settings, revision)} | report
