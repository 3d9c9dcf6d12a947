"""What waits for somebody's yes: review list, review approve, review reject."""

import re
import sys
from typing import Any

import click

from remit.cli import completion
from remit.cli.connection import connected
from remit.cli.options import Asked, asked
from remit.cli.outcome import UNREACHABLE, exit_code, next_step, print_json, say
from remit.cli.review_table import MARK, in_full, table, where
from remit.errors import RemitError
from remit.model.event import EFFECTS, Effect

_CALL = re.compile(r"[0-9a-f]{12}")
"""The id of a call that waits."""
_PAIR = 2


@click.group()
def review() -> None:
    """Approve or reject calls that wait, and capabilities, cards and tools that need a review."""


@review.command("list")
@click.option(
    "--status",
    type=click.Choice(["pending", "approved", "rejected", "lapsed", "expired"]),
    default="pending",
    help="Those that wait, those that were decided, or calls that lapsed.",
)
@click.option(
    "--kind",
    type=click.Choice(["approval", "capability", "card", "tool"]),
    help="Only one kind.",
)
@click.option("--effect", type=click.Choice(EFFECTS), help="Only outside tools that do this.")
@click.option("--full", is_flag=True, help="All that a yes would allow, with each change.")
@asked
def list_(ask: Asked, *, status: str, kind: str | None, effect: Effect | None, full: bool) -> None:
    """List what waits, a line each; --full shows everything that a yes would let happen."""
    data = {"status": status} | ({"kind": kind} if kind else {})
    data |= {"effect": effect} if effect else {}
    with connected(ask.settings()) as remit:
        answer = remit.call("review:list", data)
        while answer["next"]:
            page = remit.call("review:list", data | {"after": answer["next"]})
            items = answer["items"] + page["items"]
            answer = answer | {"items": items, "total": len(items), "next": page["next"]}
    if ask.as_json:
        print_json(answer)
        return
    items = answer["items"]
    for line in [line for item in items for line in in_full(item)] if full else table(items):
        say(line)
    more = f"; {answer['left_out']} more do not fit, see --effect" if answer["left_out"] else ""
    say(f"{answer['total']} {status}{more}")
    if not items:
        next_step("audit --event review:decide")
    else:
        next_step(f"review approve {items[0]['id']}" if full else "review list --full")


def ids_in(words: tuple[str, ...]) -> list[str]:
    """The reviews that the words of a command name, one after the other.

    A word with a `/` or a `:` is an id, and so is that of a call; else two words are one:
    `PROFILE CAPABILITY`, `card ID`, `tool SERVER/TOOL`.
    """
    found, left = [], list(words)
    while left:
        word = left.pop(0)
        is_call = _CALL.fullmatch(word) and not (len(words) == _PAIR and _is_plain(words[1]))
        if not left or is_call or not _is_plain(word):
            found.append(word)
        else:
            found.append(f"{word}{':' if word in ('card', 'tool') else '/'}{left.pop(0)}")
    alone = found[-1]
    if len(found) > 1 and _is_plain(alone) and not _CALL.fullmatch(alone):
        raise click.UsageError(
            f"{alone!r} is no review: name each by its ID, a PROFILE and a CAPABILITY, card ID, "
            "or tool SERVER/TOOL"
        )
    return found


def _is_plain(word: str) -> bool:
    return not {"/", ":"} & set(word)


def _decide(ask: Asked, words: tuple[str, ...], **decision: str | None) -> None:
    ids = ids_in(words)
    answers, refused = _decided(ask, ids, decision)
    if ask.as_json:
        several = {"decided": answers, "refused": [_refusal(*one) for one in refused]}
        print_json(several if len(ids) > 1 else answers[0])
    else:
        for answer in answers:
            _say_decided(answer)
        for name, error in refused:
            click.echo(f"error: {name}: {error.message} [{error.code}]", err=True)
        next_step("review list")
    if refused:
        sys.exit(exit_code(refused[0][1].code))


def _decided(
    ask: Asked, ids: list[str], decision: dict[str, str | None]
) -> tuple[list[dict[str, Any]], list[tuple[str, RemitError]]]:
    """What came of each; of several, one that is refused does not stop the others."""
    answers, refused = [], []
    for name in ids:
        try:
            with connected(ask.settings()) as remit:
                data = {"id": name} | {key: said for key, said in decision.items() if said}
                answers.append(remit.call("review:decide", data))
        except RemitError as error:
            if len(ids) == 1 or exit_code(error.code) == UNREACHABLE:
                raise
            refused.append((name, error))
    return answers, refused


def _refusal(name: str, error: RemitError) -> dict[str, Any]:
    return {"id": name, "code": error.code, "message": error.message, "hint": error.hint}


def _say_decided(answer: dict[str, Any]) -> None:
    if answer["kind"] == "approval":
        who = f"{answer['requested_by']}{where(answer)}"
        say(f"{answer['status']}: {answer['event']} for {who}, once")
    elif answer["kind"] == "card":
        may = "may" if answer["status"] == "approved" else "is not to"
        say(f"{answer['status']}: the card {answer['card']} {may} be injected as it is now")
    elif answer["kind"] == "tool":
        may = "may" if answer["status"] == "approved" else "may not"
        names_ = ", ".join(
            f"{one['tool']}@{one['fingerprint'][:MARK]}" for one in answer["decided"]
        )
        say(f"{answer['status']}: of {answer['upstream']} {may} be called: {names_}")
        for one in answer["held"]:
            say(f"  {one['tool']} still waits: {one['reason']}")
        say(f"  revision {answer['revision']} is in force")
    else:
        verb = "gets" if answer["status"] == "approved" else "does not get"
        events = ", ".join([*answer["grants"], *answer["claude_tools"]]) or "nothing"
        say(f"{answer['status']}: {answer['agent'] or answer['profile']} {verb} {events}")
        say(f"  revision {answer['revision']} is in force")


@review.command()
@click.argument("id", nargs=-1, required=True, shell_complete=completion.reviews)
@click.option("--note", default="", help="Why; whoever asked is told.")
@click.option("--effect", type=click.Choice(EFFECTS), help="Of 'tool:SERVER/*' only these.")
@asked
def approve(
    ask: Asked,
    id: tuple[str, ...],  # noqa: A002 - as shown
    *,
    note: str,
    effect: Effect | None,
) -> None:
    """Approve calls by ID; capabilities: PROFILE CAPABILITY; card ID; or tool SERVER/TOOL."""
    _decide(ask, id, decision="approve", note=note, effect=effect)


@review.command()
@click.argument("id", nargs=-1, required=True, shell_complete=completion.reviews)
@click.option("--note", default="", help="Why; whoever asked is told.")
@click.option("--effect", type=click.Choice(EFFECTS), help="Of 'tool:SERVER/*' only these.")
@asked
def reject(
    ask: Asked,
    id: tuple[str, ...],  # noqa: A002 - as shown
    *,
    note: str,
    effect: Effect | None,
) -> None:
    """Reject calls by ID; capabilities: PROFILE CAPABILITY; card ID; or tool SERVER/TOOL."""
    _decide(ask, id, decision="reject", note=note, effect=effect)
