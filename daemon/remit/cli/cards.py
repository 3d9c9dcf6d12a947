"""What models are given, and what is wrong with it: cards, scan, link."""

import shlex
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import click
import msgspec

from remit import __version__
from remit.app.offline_cards import check_cards, describe_cards, try_cards
from remit.app.scan import ScanResult, scan_paths
from remit.app.scan_installation import scan_installation
from remit.app.workbench import source_of_daemon, source_of_files
from remit.cli.commands import invoked_as
from remit.cli.connection import connected, daemon_answers
from remit.cli.options import SharedOptions, completing, with_options
from remit.cli.outcome import (
    NO,
    counted,
    next_step,
    print_json,
    say,
    say_problems,
    say_source,
)
from remit.features.scan.alarms import Alarm, Level, at_least, sarif_document

_ID_WIDTH = 24
_MISSED = 6
_NEED, _SHORT = 32, 40
_STDOUT = "-"
_COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


@click.group(invoke_without_command=True)
@with_options
def cards(shared: SharedOptions) -> None:
    """List cards, check their files, and try which of them a message calls for."""
    if click.get_current_context().invoked_subcommand is not None:
        if shared.as_json or shared.home:
            message = f"options come after the command: {invoked_as()} cards list --json"
            raise click.UsageError(message)
        return
    _list(shared)


@cards.command("list")
@with_options
def list_(shared: SharedOptions) -> None:
    """List the cards of the daemon, or of the files when none runs."""
    _list(shared)


def _list(shared: SharedOptions) -> None:
    answer = _listed(shared)
    if shared.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        words = ", ".join(item["triggers"]["keywords"])
        where = f"{item['source']:9} {item['priority']:3}"
        say(f"{item['id']:{_ID_WIDTH}} {where}  {item['description']}")
        say(f"{'':{_ID_WIDTH}} on: {words}")
    for item in answer.get("quarantined", ()):
        say(click.style(f"{item['id']:{_ID_WIDTH}} in quarantine: {item['file']}", fg="yellow"))
    _say_state(answer)
    say_source(answer)
    suspicious = answer.get("quarantined")
    next_step("review list --kind card" if suspicious else "cards try 'a message'")


def _say_state(answer: dict[str, Any]) -> None:
    wrong = len(answer.get("problems", ()))
    note = f", {wrong} problems: {invoked_as()} cards check" if wrong else ""
    say(f"{answer['total']} cards, awareness is {answer['mode']}{note}")
    switch = answer.get("switch", {"on": True})
    if not switch["on"]:
        text = f"stopped by {switch['by']}: {switch['reason']}"
        say(click.style(text, fg="red"))
        say(f"  let it go on: {invoked_as()} call awareness:switch on=true")
    day = answer.get("day")
    if day and day["sessions"]:
        say(f"{day['injected']} of {day['sessions']} sessions in a day got a card")


def _listed(shared: SharedOptions) -> dict[str, Any]:
    settings = shared.definitions()
    with daemon_answers(settings) as daemon:
        if daemon is not None:
            answer = daemon.cards()
            return answer | {"source": source_of_daemon(settings, daemon.revision())}

    return describe_cards(settings) | {"source": source_of_files(settings)}


@cards.command()
@with_options
def check(shared: SharedOptions) -> None:
    """Read every card file and show what is wrong or suspicious."""
    settings = shared.definitions()
    source = {"source": source_of_files(settings)}
    found = check_cards(settings)
    errors = sum(problem.is_error for problem in found.problems)
    failed = bool(errors or found.quarantined)
    if shared.as_json:
        print_json({"ok": not failed, **describe_cards(settings, found), **source})
        sys.exit(NO if failed else 0)
    say_problems(found.problems)
    for ready in found.quarantined:
        say(click.style(f"{ready.card.place}: in quarantine, {ready.score} of 100", fg="yellow"))
        for reason in ready.reasons:
            say(f"    {reason}")
    for one in found.shadowed:
        say(f"not used: {one}")
    warnings = len(found.problems) - errors
    say(
        f"{len(found.cards)} cards, {errors} errors, {warnings} warnings, "
        f"{len(found.quarantined)} in quarantine"
    )
    say_source(source)
    next_step("review list --kind card" if found.quarantined else "cards try 'a message'")
    sys.exit(NO if failed else 0)


@cards.command("try")
@click.argument("message", nargs=-1, required=True)
@click.option("--session-type", default="main", help="What kind of session it is; main.")
@click.option("--scorer", help="Another scorer than the configured one.")
@with_options
def try_(
    shared: SharedOptions, message: tuple[str, ...], *, session_type: str, scorer: str | None
) -> None:
    """Score every card against MESSAGE, word by word; several are a conversation, oldest first."""
    settings = shared.definitions()
    answer = try_cards(settings, message, session_type=session_type, scorer=scorer)
    answer |= {"source": source_of_files(settings)}
    if shared.as_json:
        print_json(answer)
        return
    for row in answer["cards"]:
        is_given = row["verdict"] == "injected"
        shown = click.style(row["verdict"].replace("_", " "), fg="green" if is_given else None)
        say(f"{row['id']:{_ID_WIDTH}} {row['relevance']:.2f} of {row['threshold']:.2f}  {shown}")
        for match in row["matches"]:
            times = f"{match['count']} times" if match["count"] > 1 else "once"
            say(f"    + {match['keyword']}  {times}, weighs {match['weight']:.2f}")
        if row["matches"] and row["missed"]:
            rest = row["missed"][:_MISSED]
            more = (
                f" and {len(row['missed']) - len(rest)} more"
                if len(row["missed"]) > _MISSED
                else ""
            )
            say(f"    - {', '.join(rest)}{more}")
    say(f"{answer['total_tokens']} of {answer['budget']} tokens, by the scorer {answer['scorer']}")
    say_source(answer)
    next_step("cards check")


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
@with_options
def scan(
    shared: SharedOptions, path: tuple[Path, ...], *, sarif: str | None, min_severity: "Level"
) -> None:
    """Scan what models are shown for text that was written to steer them.

    Without PATH: events, definitions, cards, skills, and the tools of upstream servers. With PATH:
    only these folders of skills, answers to tools/list, and mcpServers files of hosts.
    """
    _check_sarif(shared, sarif)

    source = None
    if path:
        found = scan_paths(path)
    else:
        settings = shared.definitions()
        found, source = scan_installation(settings), source_of_files(settings)
    told = at_least(found.alarms, min_severity)
    if sarif is not None:
        _give_sarif(told, sarif)
    if shared.as_json:
        print_json(_scan_answer(found, told))
    elif sarif != _STDOUT:
        _say_scanned(found, told)
        if source is not None:
            say_source({"source": source})
        next_step(_next_scan(found, told, path))
    sys.exit(NO if told else 0)


def _check_sarif(shared: SharedOptions, sarif: str | None) -> None:
    if sarif == _STDOUT and shared.as_json:
        raise click.UsageError("--json and --sarif both write to the screen; give --sarif a FILE")
    if sarif not in (None, _STDOUT) and not str(sarif).endswith((".sarif", ".sarif.json")):
        # The word behind --sarif may have been meant as a PATH, and would be written over.
        message = f"{sarif!r} does not end in .sarif; write PATHs before --sarif, or --sarif=-"
        raise click.BadParameter(message, param_hint="--sarif")


def _give_sarif(told: "tuple[Alarm, ...]", target: str) -> None:

    document = sarif_document(told, version=__version__)
    if target == _STDOUT:
        print_json(document)
        return
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=2)
    try:
        Path(target).write_bytes(encoded + b"\n")
    except OSError as error:
        message = f"{target!r} cannot be written: {error.strerror or error}"
        raise click.BadParameter(message, param_hint="--sarif") from error


def _scan_answer(found: "ScanResult", told: "tuple[Alarm, ...]") -> dict[str, object]:
    return {
        "ok": not told,
        "findings": [one.to_json() for one in told],
        "counts": found.counts(),
        "scanned": found.subjects,
    }


def _say_scanned(found: "ScanResult", told: "tuple[Alarm, ...]") -> None:
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


def _next_scan(found: "ScanResult", told: "tuple[Alarm, ...]", paths: tuple[Path, ...]) -> str:
    again = shlex.join(["scan", *map(str, paths)])
    if not told:
        return f"{again} --min-severity note" if found.alarms else "check"
    kind, _, name = told[0].subject.partition(":")
    waits = kind == "card" or (kind == "tool" and "/" in name)
    return f"review list --kind {kind}" if waits and not paths else f"{again} --sarif=scan.sarif"


@click.command()
@click.argument("needs", nargs=-1, required=True)
@click.option("--tags", default="", help="The context, as in eu,salary.")
@click.option("--model", default="", help="Who will work on it.")
@click.option(
    "--as", "agent", help="An agent or client; you when absent.", shell_complete=completing("agent")
)
@click.option("--bind", is_flag=True, help="Open a session that leaves these tools alone.")
@click.option("--explore", type=click.IntRange(0, 1000), help="Prefer what had fewer trials.")
@with_options
def link(  # noqa: PLR0913 - one for each option
    shared: SharedOptions,
    needs: tuple[str, ...],
    *,
    tags: str,
    model: str,
    agent: str | None,
    bind: bool,
    explore: int | None,
) -> None:
    """Show which tools and skills a mission with NEEDS would be given, and what is missing."""
    asked: dict[str, Any] = {
        "needs": needs,
        "tags": [one for one in map(str.strip, tags.split(",")) if one],
        "model": model,
        "agent": agent,
        "bind": bind,
        "exploration": explore or 0,
    }
    with connected(shared.settings()) as remit:
        answer = remit.call("link:mission", asked)
    if shared.as_json:
        print_json(answer)
        return
    for line in picture(answer):
        say(line)
    next_step(_step_after(answer))


def _step_after(answer: dict[str, Any]) -> str:
    if answer["session"]:
        return f"spawn PROFILE --session {answer['session']}"
    linked = [one["event"] for one in answer["tools"]["visible"] if one["event"]]
    return f"who-can {linked[0]}" if linked else 'discover "what you want to do" --as PROFILE'


def picture(answer: dict[str, Any]) -> list[str]:
    """The answer of `link:mission` as people read it: needs, tools, skills, phase 0."""
    return [
        "Needs",
        *(_need_line(one) for one in answer["needs"]),
        *_tool_lines(answer["tools"]),
        *_skill_lines(answer),
        *_work_lines(answer),
        _saving_line(answer["tokens"]),
    ]


def _need_line(one: dict[str, Any]) -> str:
    need = _shortened(one["need"], _NEED).ljust(_NEED)
    if one["tool"] is None:
        return f"  {need} → {'nothing that can be used' if one['relevance'] else 'MISSING'}"
    choice = next(each for each in one["choices"] if each["id"] == one["tool"])
    parts = choice["arithmetic"]
    rate = f"{parts['base']:.0%} of {parts['n']:g}" if parts["n"] else "untried"
    fits = f"{one['relevance']:.0%} sure" if one["relevance"] < 1 else "by name"
    rivals = f", best of {len(one['choices'])}" if len(one["choices"]) > 1 else ""
    return f"  {need} → {one['tool']}  ({choice['health']}, {rate}, {fits}{rivals})"


def _tool_lines(tools: dict[str, Any]) -> list[str]:
    lines = ["Tools"]
    for one in tools["visible"]:
        retry = "  try again when it fails" if one["retry"] else ""
        lines.append(f"  {one['id']}  {_shortened(one['description'], _SHORT)}{retry}")
    lines += [f"  {one['id']}  hidden: another one needs it" for one in tools["hidden"]]
    return lines if len(lines) > 1 else [*lines, "  none"]


def _skill_lines(answer: dict[str, Any]) -> list[str]:
    lines = [
        f"  {one['id']}  for {', '.join([*one['tools'], *one['tags']])}" for one in answer["skills"]
    ]
    lines += [f"  {one}  left out of the prompt" for one in answer["skills_left_out"]]
    lines += [f"  {one} and {other} contradict each other" for one, other in answer["conflicts"]]
    return ["Skills", *lines] if lines else []


def _work_lines(answer: dict[str, Any]) -> list[str]:
    lines = [f"  {one['work']} {_shortened(one['need'], _SHORT)}" for one in answer["phase_0"]]
    lines += [
        f"    {one['id']} is {one['state']}" + (f": {one['reason']}" if "reason" in one else "")
        for one in answer["unhealthy"]
    ]
    lines += [f"    {' needs '.join([*one, one[0]])}" for one in answer["cycles"]]
    lines += [f"    {one['hint']}" for one in answer["missing"] if one["hint"]]
    return ["Phase 0", *lines] if lines else []


def _saving_line(tokens: dict[str, Any]) -> str:
    sent = counted(tokens["total"], "token")
    parts = f"tools {tokens['tools']:,}, skills {tokens['skills']:,}"
    return f"{sent} ({parts}) instead of {tokens['full_dump']:,}: {tokens['saving']:.0%} saved"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
