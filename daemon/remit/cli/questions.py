"""Questions about definitions: check, resolve, can, why, who-can, gives."""

import sys
from typing import Any

import click

from remit.app.workbench import (
    abandoned_agents,
    explain_subject,
    open_workbench,
    source_of_daemon,
    source_of_files,
    upstream_problems,
)
from remit.cli.commands import invoked_as
from remit.cli.connection import daemon_answers, problems_in
from remit.cli.options import SharedOptions, completing, variables_of, with_definition_options
from remit.cli.outcome import (
    BAD_INPUT,
    NO,
    counted,
    first_look,
    limits_text,
    next_step,
    print_json,
    say,
    say_hint,
    say_problems,
    say_source,
)
from remit.config.definitions.launchers import Commands, launcher_warnings, list_warnings
from remit.config.settings.launch_user import launch_user
from remit.errors import REQUEST, DefinitionError, Problem, by_place
from remit.features.permissions.reports import check_report, grant_report
from remit.kernel.authority.explanation import holders
from remit.model.limits import EFFECTS, Effect
from remit.model.names import did_you_mean
from remit.policy.catalogue import Catalogue
from remit.policy.compile import resolve as resolve_profile
from remit.policy.queries import gives as what_it_gives


@click.command()
@with_definition_options
def check(shared: SharedOptions) -> None:
    """Check definitions and show every mistake of every file at once."""
    settings = shared.definitions()
    launch_user(settings)
    commands = Commands(settings.launch_commands)
    listed = list_warnings(commands, str(settings.origins["launch_commands"]))
    outside = (*upstream_problems(settings), *listed)
    step = "check   (after the next edit)"
    try:
        bench = open_workbench(settings, shared.events)
        launchers = launcher_warnings(bench.catalogue, commands)
        found = (
            *bench.catalogue.warnings,
            *bench.files.illustrate(launchers),
            *abandoned_agents(bench),
            *bench.module_problems(),
            *outside,
        )
        problems = tuple(sorted(found, key=by_place))
        report = check_report(bench.catalogue, problems) | {"source": bench.source}
        if report["ok"]:
            step = first_look(bench.catalogue.compositions)
    except DefinitionError as error:
        problems = (*error.problems, *outside)
        report = check_report(None, problems) | {"source": source_of_files(settings)}
    if shared.as_json:
        print_json(report)
    else:
        say_problems(problems)
        _say_checked(report)
        next_step(step)
    sys.exit(0 if report["ok"] else BAD_INPUT)


def _say_checked(report: dict[str, Any]) -> None:
    counts = report["counts"]
    if not report["ok"]:
        refused = "" if counts["events"] else ": nothing of this would be put in force"
        say(f"{counted(len(report['errors']), 'error')}{refused}")
        say_source(report)
        return
    say(
        f"fine: {counted(counts['capabilities'], 'capability')}, "
        f"{counted(counts['profiles'], 'profile')}, {counted(counts['events'], 'event')}, "
        f"{counted(len(report['warnings']), 'warning')}"
    )
    say_source(report)


@click.command()
@click.argument("profile", shell_complete=completing("profile"))
@click.option("--var", "variables", multiple=True, help="A variable, as name=value.")
@click.option("--max-effect", type=click.Choice(EFFECTS), help="Leave out what does more.")
@with_definition_options
def resolve(
    shared: SharedOptions, profile: str, *, variables: tuple[str, ...], max_effect: Effect | None
) -> None:
    """Show what PROFILE grants."""
    report, problems = _resolved(shared, profile, variables, max_effect)
    if shared.as_json:
        print_json(report)
        return
    say_problems(problems)
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
    if "max_effect" in report:
        say(f"  max effect: {report['max_effect']}")
    say(f"  exposure: {report['exposure']}")
    say_source(report)
    shown = (report["denied_events"] or report["allowed_events"] or ["system:health"])[0]
    next_step(f"why {profile} {shown}")


def _resolved(
    shared: SharedOptions, profile: str, variables: tuple[str, ...], max_effect: Effect | None
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """What a profile grants, by the running daemon or by files, and what is odd about it."""
    settings = shared.definitions()
    if not shared.about_files:
        with daemon_answers(settings) as daemon:
            if daemon is not None:
                report = daemon.resolve(profile, variables, max_effect)
                source = source_of_daemon(settings, report["revision"])
                return report | {"source": source}, tuple(
                    problems_in(report["warnings"], "warning")
                )
    bench = open_workbench(settings, shared.events)
    values = variables_of(variables, _types(bench.catalogue, profile))
    grant = resolve_profile(bench.catalogue, profile, variables=values, max_effect=max_effect)
    report = grant_report(bench.fleet.with_made(grant, bench.catalogue))
    shown = bench.files.illustrate(grant.warnings)
    return report | {"source": bench.source}, shown


def _types(catalogue: Catalogue, profile: str) -> dict[str, str]:
    return {name: one.type for name, one in catalogue.variables.get(profile, {}).items()}


def _say_lists(report: dict[str, Any], keys: dict[str, str]) -> None:
    """Print the lists of a report under their titles, and its limits; empty ones are left out."""
    for title, key in keys.items():
        if report[key]:
            say(f"  {title}: {', '.join(report[key])}")
    if report["limits"]:
        say(f"  limits: {limits_text(report['limits'])}")


def _explanation(
    shared: SharedOptions, subject: str, event: str, session: str | None = None
) -> Any:
    """Ask the running daemon, unless definitions are named: then they are what is asked about."""
    settings = shared.definitions()
    if not shared.about_files:
        with daemon_answers(settings) as daemon:
            if daemon is not None:
                found = daemon.explain(subject, event, session)
                source = source_of_daemon(settings, found["revision"])
                return found | {"source": source}
    bench = open_workbench(settings, shared.events, asked=event)
    found = explain_subject(
        bench, settings, subject, event, session, files_first=shared.about_files
    )
    return found | {"source": bench.source}


@click.command()
@click.argument("subject", shell_complete=completing("subject"))
@click.argument("event", shell_complete=completing("event"))
@click.option("--session", help="In requests that name this session.")
@with_definition_options
def can(shared: SharedOptions, subject: str, event: str, *, session: str | None) -> None:
    """Tell whether SUBJECT, a profile or an agent, may use EVENT."""
    found = _explanation(shared, subject, event, session)
    if shared.as_json:
        keys = ("allowed", "reason", "subject", "event", "revision", "source")
        print_json({key: found[key] for key in keys})
    else:
        word = click.style("yes", fg="green") if found["allowed"] else click.style("no", fg="red")
        say(
            f"{word}: {subject} {'may' if found['allowed'] else 'may not'} use {event} "
            f"({found['reason']})"
        )
        _say_absence(found)
        say_source(found)
        next_step(f"why {subject} {event}")
    sys.exit(0 if found["allowed"] else NO)


def _say_absence(found: dict[str, Any]) -> None:
    """Say who is meant when nobody has that name, or that somebody had it."""
    if found["reason"] in ("revoked", "unknown_agent"):
        for cause in found["causes"]:
            hint = f": {cause['hint']}" if cause["hint"] else ""
            click.echo(f"warning: {cause['message']}{hint}", err=True)


@click.command()
@click.argument("subject", shell_complete=completing("subject"))
@click.argument("event", shell_complete=completing("event"))
@click.option("--session", help="In requests that name this session.")
@with_definition_options
def why(shared: SharedOptions, subject: str, event: str, *, session: str | None) -> None:
    """Tell why SUBJECT, a profile or an agent, may or may not use EVENT."""
    found = _explanation(shared, subject, event, session)
    if shared.as_json:
        print_json(found)
    else:
        _say_why(subject, event, found)
    sys.exit(0 if found["allowed"] else NO)


def _say_why(subject: str, event: str, found: dict[str, Any]) -> None:
    allowed = found["allowed"]
    verdict = "may" if allowed else "may not"
    say(click.style(f"{subject} {verdict} use {event}: {found['reason']}", bold=True))
    for rule in found["granted_by"]:
        how = " → ".join(rule["path"]) if rule["path"] else "a tool list"
        given = "granted by" if allowed else "would be granted by"
        say(f"  {given} {how}, pattern {rule['pattern']}")
        say(f"    {_place(rule)}")
    for rule in found["denied_by"]:
        say(f"  {click.style('denied', fg='red')} by the pattern {rule['pattern']}")
        say(f"    {_place(rule)}")
    for cause in found["causes"]:
        word = "but" if allowed else "because"
        say(f"  {click.style(word, fg='red')} {cause['message']}")
        if "file" in cause:
            say(f"    {_place(cause)}")
        say_hint(cause["hint"])
    _say_way_out(event, found)
    if allowed and found.get("limits"):
        say(f"  within its limits: {limits_text(found['limits'])}")
    say_source(found)
    if not found["denied_by"]:
        next_step(f"who-can {event}")
    elif found["source"].kind == "daemon":
        next_step("plan   (after that line was edited)")
    else:
        next_step("plan --from OLD --to NEW   (after that line was edited)")


def _say_way_out(event: str, found: dict[str, Any]) -> None:
    """The one line that would allow it, or events that may have been meant."""
    for miss in found["near_misses"]:
        if miss["event"] != event:
            _say_near(**miss)
    repair = found["repair"]
    if repair:
        where = f" to {repair['file']}" if repair["file"] else ""
        say(f"  to allow it, add{where} (gives {counted(repair['events'], 'event')} in all):")
        say(f"    {repair['line']}")
        if repair["review"]:
            approve = f"{invoked_as()} review approve {repair['review']}"
            say(f"    then an operator has to approve it: {approve}")


def _say_near(event: str, capability: str | None) -> None:
    """An event that may have been meant, and the line that would allow it."""
    if capability is None:
        say(f"  near: {event}; to allow it, add: additional_tools: [{event}]")
    else:
        say(f"  near: {event} (held by {capability})")
        say(f"    to allow it, add: capabilities: {{{capability}: true}}")


def _place(rule: dict[str, Any]) -> str:
    if rule["file"] == REQUEST.file:
        return "what the agent was given beside its profile; agent:update changes it"
    return f"{rule['file']}:{rule['line']}:{rule['column']}"


@click.command("who-can")
@click.argument("event", shell_complete=completing("event"))
@with_definition_options
def who_can(shared: SharedOptions, event: str) -> None:
    """Tell who may use EVENT; exit code 1 when nobody may, or there is no such event."""
    report, similar = _holders(shared, event)
    if shared.as_json:
        print_json(report)
    else:
        say(f"profiles: {', '.join(report['profiles']) or 'none'}")
        say(f"agents: {', '.join(report['agents']) or 'none'}")
        if similar is not None:
            click.echo(f"warning: there is no event {event!r}. {similar}".strip(), err=True)
        say_source(report)
        holders_ = [*report["profiles"], *report["agents"]]
        next_step(f"why {holders_[0]} {event}" if holders_ else "lint")
    sys.exit(0 if report["profiles"] or report["agents"] else NO)


def _holders(shared: SharedOptions, event: str) -> tuple[dict[str, Any], str | None]:
    """Who may use an event, and a suggestion when there is none of that name."""
    settings = shared.definitions()
    if not shared.about_files:
        with daemon_answers(settings) as daemon:
            if daemon is not None:
                found = daemon.who_can(event)
                similar = daemon.suggestion(event) if not found["profiles"] else None
                source = source_of_daemon(settings, found.pop("revision"))
                return found | {"source": source}, similar
    bench = open_workbench(settings, shared.events)
    universe = bench.catalogue.universe
    found = holders(bench.fleet, bench.catalogue, event)
    unknown = universe.canonical(event) not in universe.index
    similar = did_you_mean(event, universe.names) if unknown else None
    return found | {"source": bench.source}, similar


@click.command()
@click.argument("capability", shell_complete=completing("capability"))
@with_definition_options
def gives(shared: SharedOptions, capability: str) -> None:
    """Tell what CAPABILITY gives, with all it requires."""
    report = _given(shared, capability)
    if shared.as_json:
        print_json(report)
        return
    say(click.style(report["capability"], bold=True) + f" - {report['description']}")
    _say_lists(report, {"events": "events", "model tools": "claude_tools", "requires": "requires"})
    say_source(report)
    next_step(f"who-can {report['events'][0]}" if report["events"] else "lint")


def _given(shared: SharedOptions, capability: str) -> dict[str, Any]:
    settings = shared.definitions()
    if not shared.about_files:
        with daemon_answers(settings) as daemon:
            if daemon is not None:
                found = daemon.capability(capability)
                source = source_of_daemon(settings, daemon.revision())
                return found | {"source": source}
    bench = open_workbench(settings, shared.events)
    return what_it_gives(bench.catalogue, capability) | {"source": bench.source}
