"""Cards as their authors see them: cards list, cards check, cards try."""

import sys
from typing import Any

import click

from remit.app.workbench import source_of_daemon, source_of_files
from remit.cli.connection import daemon_answers
from remit.cli.invocation import invoked_as
from remit.cli.options import Asked, asked
from remit.cli.outcome import NO, next_step, print_json, say, say_problems, say_source

_NAME = 24
_MISSED = 6


@click.group(invoke_without_command=True)
@asked
def cards(ask: Asked) -> None:
    """List cards, check their files, and try which of them a message calls for."""
    if click.get_current_context().invoked_subcommand is not None:
        if ask.as_json or ask.home:
            message = f"options come after the command: {invoked_as()} cards list --json"
            raise click.UsageError(message)
        return
    _list(ask)


@cards.command("list")
@asked
def list_(ask: Asked) -> None:
    """List the cards of the daemon, or of the files when none runs."""
    _list(ask)


def _list(ask: Asked) -> None:
    answer = _listed(ask)
    if ask.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        words = ", ".join(item["triggers"]["keywords"])
        say(f"{item['id']:{_NAME}} {item['source']:9} {item['priority']:3}  {item['description']}")
        say(f"{'':{_NAME}} on: {words}")
    for item in answer.get("quarantined", ()):
        say(click.style(f"{item['id']:{_NAME}} in quarantine: {item['file']}", fg="yellow"))
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


def _listed(ask: Asked) -> dict[str, Any]:
    settings = ask.definitions()
    with daemon_answers(settings) as daemon:
        if daemon is not None:
            answer = daemon.cards()
            return answer | {"source": source_of_daemon(settings, daemon.revision())}
    from remit.app.offline_cards import describe_cards  # noqa: PLC0415 - the scanner and its rules

    return describe_cards(settings) | {"source": source_of_files(settings)}


@cards.command()
@asked
def check(ask: Asked) -> None:
    """Read every card file and show what is wrong or suspicious."""
    from remit.app.offline_cards import check_cards, describe_cards  # noqa: PLC0415 - see above

    settings = ask.definitions()
    source = {"source": source_of_files(settings)}
    found = check_cards(settings)
    errors = sum(problem.is_error for problem in found.problems)
    failed = bool(errors or found.quarantined)
    if ask.as_json:
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
@asked
def try_(ask: Asked, message: tuple[str, ...], *, session_type: str, scorer: str | None) -> None:
    """Score every card against MESSAGE, word by word; several are a conversation, oldest first."""
    from remit.app.offline_cards import try_cards  # noqa: PLC0415 - see above

    settings = ask.definitions()
    answer = try_cards(settings, message, session_type=session_type, scorer=scorer)
    answer |= {"source": source_of_files(settings)}
    if ask.as_json:
        print_json(answer)
        return
    for row in answer["cards"]:
        is_given = row["verdict"] == "injected"
        shown = click.style(row["verdict"].replace("_", " "), fg="green" if is_given else None)
        say(f"{row['id']:{_NAME}} {row['relevance']:.2f} of {row['threshold']:.2f}  {shown}")
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
