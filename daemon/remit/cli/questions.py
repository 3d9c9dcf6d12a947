"""Questions about definitions: check, resolve, can, why, who-can, gives."""

import sys
from typing import Any

import click

from remit.app.outside_offline import outside_problems
from remit.app.workbench import Workbench, definition_files, load_universe, open_workbench
from remit.cli.connection import daemon_answers
from remit.cli.options import Asked, asked_about_definitions, variables_of
from remit.cli.outcome import BAD_INPUT, NO, next_step, print_json, say, say_problems
from remit.config.launch_commands import Commands, launcher_warnings
from remit.model.event import EFFECTS, Effect
from remit.model.place import DefinitionError, by_place
from remit.model.suggest import did_you_mean
from remit.policy.compiler import resolve as resolve_profile
from remit.policy.explain import explain
from remit.policy.questions import gives as what_it_gives
from remit.policy.questions import who_can as who_holds
from remit.runtime.authority import compile_files
from remit.runtime.report import check_report, grant_report


@click.command()
@asked_about_definitions
def check(ask: Asked) -> None:
    """Check definitions and show every mistake of every file at once."""
    settings = ask.settings()
    universe, _, failures = load_universe(settings, ask.events)
    files = definition_files(settings)
    outside = outside_problems(settings)
    try:
        compiled = compile_files(files, universe).catalogue
        launchers = launcher_warnings(compiled, Commands(settings.launch_commands))
        found = (*compiled.warnings, *files.illustrate(launchers), *outside)
        problems = tuple(sorted(found, key=by_place))
        report = check_report(compiled, problems)
    except DefinitionError as error:
        problems = (*error.problems, *outside)
        report = check_report(None, problems)
    if ask.as_json:
        print_json(report)
    else:
        say_problems(problems)
        for failure in failures:
            click.echo(f"warning: {failure}", err=True)
        _say_checked(report)
    sys.exit(0 if report["ok"] else BAD_INPUT)


def _say_checked(report: dict[str, Any]) -> None:
    counts = report["counts"]
    if not report["ok"]:
        say(f"{len(report['errors'])} errors: nothing of this would be put in force")
        return
    say(
        f"fine: {counts['capabilities']} capabilities, {counts['profiles']} profiles, "
        f"{counts['events']} events, {len(report['warnings'])} warnings"
    )
    next_step("resolve observer")


@click.command()
@click.argument("profile")
@click.option("--var", "variables", multiple=True, help="A variable, as name=value.")
@click.option("--max-effect", type=click.Choice(EFFECTS), help="Leave out what does more.")
@asked_about_definitions
def resolve(
    ask: Asked, profile: str, *, variables: tuple[str, ...], max_effect: Effect | None
) -> None:
    """Show what PROFILE grants."""
    bench = open_workbench(ask.settings(), ask.events)
    values = variables_of(variables, bench.catalogue.variables.get(profile, {}))
    grant = resolve_profile(bench.catalogue, profile, variables=values, max_effect=max_effect)
    report = grant_report(grant)
    if ask.as_json:
        print_json(report)
        return
    say_problems(bench.files.illustrate(grant.warnings))
    say(click.style(profile, bold=True))
    _say_lists(
        report,
        {
            "capabilities": "capabilities",
            "may use": "allowed_events",
            "denied": "denied_events",
            "waits for approval": "approval_required",
            "model tools": "allowed_claude_tools",
            "waiting for review": "pending_review",
            "always listed": "pinned",
        },
    )
    say(f"  exposure: {report['exposure']}")
    shown = (report["denied_events"] or report["allowed_events"] or ["system:health"])[0]
    next_step(f"why {profile} {shown}")


def _say_lists(report: dict[str, Any], keys: dict[str, str]) -> None:
    """Print the lists of a report under their titles, and its limits; empty ones are left out."""
    for title, key in keys.items():
        if report[key]:
            say(f"  {title}: {', '.join(report[key])}")
    if report["limits"]:
        say("  limits: " + ", ".join(f"{k} {v}" for k, v in report["limits"].items()))


def _explanation(ask: Asked, subject: str, event: str) -> Any:
    """Ask the running daemon, unless definitions are named: then they are what is asked about."""
    if not ask.about_files:
        with daemon_answers(ask.settings()) as daemon:
            if daemon is not None:
                return daemon.explain(subject, event)
    bench = open_workbench(ask.settings(), ask.events)
    resolve_profile(bench.catalogue, subject)  # an unknown profile is said with a suggestion
    return explain(bench.catalogue, subject, event).to_json()


@click.command()
@click.argument("subject")
@click.argument("event")
@asked_about_definitions
def can(ask: Asked, subject: str, event: str) -> None:
    """Tell whether SUBJECT, a profile or an agent, may use EVENT."""
    found = _explanation(ask, subject, event)
    if ask.as_json:
        keys = ("allowed", "reason", "subject", "event", "revision")
        print_json({key: found[key] for key in keys})
    else:
        word = click.style("yes", fg="green") if found["allowed"] else click.style("no", fg="red")
        say(
            f"{word}: {subject} {'may' if found['allowed'] else 'may not'} use {event} "
            f"({found['reason']})"
        )
        next_step(f"why {subject} {event}")
    sys.exit(0 if found["allowed"] else NO)


@click.command()
@click.argument("subject")
@click.argument("event")
@asked_about_definitions
def why(ask: Asked, subject: str, event: str) -> None:
    """Tell why SUBJECT, a profile or an agent, may or may not use EVENT."""
    found = _explanation(ask, subject, event)
    if ask.as_json:
        print_json(found)
    else:
        _say_why(subject, event, found)
    sys.exit(0 if found["allowed"] else NO)


def _say_why(subject: str, event: str, found: dict[str, Any]) -> None:
    verdict = "may" if found["allowed"] else "may not"
    say(click.style(f"{subject} {verdict} use {event}: {found['reason']}", bold=True))
    for rule in found["granted_by"]:
        how = " → ".join(rule["path"]) if rule["path"] else "a tool list"
        say(f"  granted by {how}, pattern {rule['pattern']}")
        say(f"    {rule['file']}:{rule['line']}:{rule['column']}")
    for rule in found["denied_by"]:
        say(f"  {click.style('denied', fg='red')} by the pattern {rule['pattern']}")
        say(f"    {rule['file']}:{rule['line']}:{rule['column']}")
    if found.get("session"):
        say(f"  {click.style('cut', fg='red')} by the session {found['session']}")
    if found.get("cut_by"):
        say(f"  {click.style('cut', fg='red')} by {found['cut_by']}, which is above it")
    for name in found["pending_review"]:
        say(f"  waits for a security review of {name}")
    for miss in found["near_misses"]:
        giver = f" (held by {miss['capability']})" if miss["capability"] else ""
        say(f"  near: {miss['event']}{giver}")
    if found["denied_by"]:
        say("  edit that line, then see what changes:")
    next_step("plan --from OLD --to NEW" if found["denied_by"] else f"who-can {event}")


@click.command("who-can")
@click.argument("event")
@asked_about_definitions
def who_can(ask: Asked, event: str) -> None:
    """Tell who may use EVENT; exit code 1 when nobody may, or there is no such event."""
    bench = open_workbench(ask.settings(), ask.events)
    agents: list[str] = []
    if not ask.about_files:
        with daemon_answers(ask.settings()) as daemon:
            agents = daemon.holders(event) if daemon is not None else []
    report = {"event": event, "profiles": who_holds(bench.catalogue, event), "agents": agents}
    if ask.as_json:
        print_json(report)
    else:
        _say_holders(bench, event, report)
    sys.exit(0 if report["profiles"] or agents else NO)


def _say_holders(bench: Workbench, event: str, report: dict[str, Any]) -> None:
    say(f"profiles: {', '.join(report['profiles']) or 'none'}")
    say(f"agents: {', '.join(report['agents']) or 'none'}")
    if bench.catalogue.universe.canonical(event) not in bench.catalogue.universe.index:
        hint = did_you_mean(event, bench.catalogue.universe.names)
        click.echo(f"warning: there is no event {event!r}. {hint}".strip(), err=True)
    next_step(f"why {(report['profiles'] or ['observer'])[0]} {event}")


@click.command()
@click.argument("capability")
@asked_about_definitions
def gives(ask: Asked, capability: str) -> None:
    """Tell what CAPABILITY gives, with all it requires."""
    bench = open_workbench(ask.settings(), ask.events)
    report = what_it_gives(bench.catalogue, capability)
    if ask.as_json:
        print_json(report)
        return
    say(click.style(report["capability"], bold=True) + f" - {report['description']}")
    _say_lists(report, {"events": "events", "model tools": "claude_tools", "requires": "requires"})
    next_step(f"who-can {report['events'][0]}" if report["events"] else "lint")
