"""Before an edit is put in force: plan, lint, migrate."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from remit.app.workbench import open_workbench, settings_with
from remit.cli.options import Asked, asked, asked_about_definitions
from remit.cli.outcome import (
    NO,
    counted,
    limit_text,
    next_step,
    print_json,
    say,
    say_hint,
    say_source,
)
from remit.config.definitions.launchers import Commands, launcher_warnings
from remit.config.settings.table import Settings
from remit.errors import InvalidDataError, NotFoundError
from remit.kernel.authority.plans import plan_between
from remit.model.suggest import did_you_mean
from remit.policy.lint import lint as find_drift

Folder = click.Path(exists=True, file_okay=False, path_type=Path)


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


@click.command()
@click.option("--from", "before", type=Folder, help="Folder of the old definitions.")
@click.option("--to", "after", type=Folder, help="Folder of the new ones; default: the configured.")
@click.option(
    "--events", type=click.Path(path_type=Path), help="Event names instead of the handlers."
)
@asked
def plan(ask: Asked, *, before: Path | None, after: Path | None, events: Path | None) -> None:
    """Show what an edit would grant and take away.

    A folder holds capabilities.yaml and compositions/.
    Without --from, the files that the daemon runs on are compared with those on disk.
    """
    # Two folders say themselves what is meant.
    settings = ask.settings() if before and after else ask.definitions()
    if before is None:
        from remit.cli.connection import plan_by_daemon  # noqa: PLC0415 - only with a daemon

        report = plan_by_daemon(settings, after)
    else:
        old = open_workbench(in_folder(settings, before), events)
        new = open_workbench(in_folder(settings, after) if after else settings, events)
        found = plan_between(new.fleet, old.catalogue, new.catalogue)
        report = {"source": new.source} | found.to_json()
    if ask.as_json:
        print_json(report)
    else:
        say_plan(report)


def in_folder(settings: Settings, folder: Path) -> Settings:
    """The settings with the definitions of a folder."""
    compositions = folder / "compositions"
    return settings_with(
        settings, catalogue=folder / "capabilities.yaml", compositions=compositions
    )


def say_plan(report: dict[str, Any], then: str = "check") -> None:
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
@asked_about_definitions
def lint(ask: Asked) -> None:
    """Find drift: patterns without events, events without capability, old names, and more."""
    settings = ask.definitions()
    bench = open_workbench(settings, ask.events)
    commands = Commands(settings.launch_commands)
    launchers = launcher_warnings(bench.catalogue, commands)
    report = find_drift(bench.catalogue, launchers, bench.module_problems())
    found = sum(map(len, report.values()))
    if ask.as_json:
        print_json(report)
    else:
        for category, findings in report.items():
            for finding in findings:
                place = (
                    f"{finding['file']}:{finding['line']}:{finding['column']}: "
                    if ("file" in finding)
                    else ""
                )
                more = finding.get("message") or ", ".join(finding.get("events", ()))
                say(f"{place}{finding['name']} [{category}]{' ' + more if more else ''}")
                for event, name in finding.get("names", {}).items():
                    say(f"    {event} is shown as {name}")
                say_hint(finding.get("hint", ""))
        say(counted(found, "finding") if found else "no drift")
        say_source({"source": bench.source})
        next_step("check")
    sys.exit(NO if found else 0)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Put the new text into the file; the old is kept.")
@asked_about_definitions
def migrate(ask: Asked, file: Path, *, write: bool) -> None:
    """Turn the explicit list of a composition FILE into capabilities that resolve to the same."""
    from remit.config.migrate.migrate import migrate as migrate_profile  # noqa: PLC0415
    from remit.config.migrate.rewrite import rewrite_composition  # noqa: PLC0415 - only this needs them

    _refuse_catalogue(file)
    ask.definitions()
    folder = ask.compositions or str(file.parent)
    bench = open_workbench(ask.settings(compositions=folder), ask.events)
    composition = next(
        (c for c in bench.catalogue.compositions.values() if _is_file(c.place.file, file)), None
    )
    if composition is None:
        hint = did_you_mean(file.name, bench.files.compositions)
        raise NotFoundError(f"{file} is not one of the compositions in {folder}", hint=hint)
    migration = migrate_profile(bench.catalogue, composition)
    raw = file.read_bytes()
    text = rewrite_composition(raw.decode("utf-8-sig"), migration)
    backup = _replace(file, text) if write else None
    if ask.as_json:
        print_json(migration.to_json() | {"backup": str(backup) if backup else None})
        return
    click.echo(text, nl=False)
    _say_migrated(migration.to_json(), file, backup)
    step = f"resolve {composition.name}" if write else f"migrate {shlex.quote(str(file))} --write"
    next_step(step, aside=True)


def _refuse_catalogue(file: Path) -> None:
    """A catalogue has nothing to migrate, and its errors as a composition help nobody.

    Raises:
        InvalidDataError: the file defines capabilities.
    """
    from remit.config.strict.yaml import Mapping, parse_yaml  # noqa: PLC0415 - only this needs it

    node, _ = parse_yaml(file.read_bytes(), str(file))
    keys = {key.text for key, _ in node.pairs} if isinstance(node, Mapping) else set()
    if "capabilities" in keys and "name" not in keys:
        raise InvalidDataError(
            f"{file} defines capabilities; what is migrated is the explicit list of one profile",
            hint=f"name a composition: remit migrate {file.parent / 'compositions' / 'NAME.yaml'}",
        )


def _is_file(shown: str, file: Path) -> bool:
    return Path(shown).resolve() == file.resolve()


def _replace(file: Path, text: str) -> Path:
    """Keep the old text beside the file, then put the new one in its place; answers where.

    The new text is written beside the file and renamed, so that a cut-off run leaves the old one.
    """
    import shutil  # noqa: PLC0415 - only this command copies

    names = (file.with_name(f"{file.name}.bak{number or ''}") for number in range(1000))
    backup = next(path for path in names if not path.exists())
    shutil.copy2(file, backup)
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_bytes(text.encode())
    temporary.chmod(file.stat().st_mode & 0o777)
    temporary.replace(file)
    return backup


def _say_migrated(report: dict[str, Any], file: Path, backup: Path | None) -> None:
    for name, (old, new) in report.get("limits_changed", {}).items():
        click.echo(f"note: {name} becomes {limit_text(new)} (was {limit_text(old)})", err=True)
    proof = "the same events and tools before and after, proven by resolving both"
    written = f"written to {file}, and the old text is in {backup}; " if backup else ""
    click.echo(f"{written}{proof}", err=True)
