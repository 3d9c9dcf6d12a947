"""What waits for somebody's yes: review list, review approve, review reject."""

import re
import sys
from datetime import datetime
from typing import Any

import click
import msgspec

from remit.cli import completion
from remit.cli.connection import connected
from remit.cli.options import Asked, asked
from remit.cli.outcome import UNREACHABLE, exit_code, next_step, print_json, say
from remit.errors import RemitError

_MARK = 12
"""How much of a fingerprint is shown; it is enough to name one."""
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
@asked
def list_(ask: Asked, *, status: str, kind: str | None) -> None:
    """List what waits, with everything that a yes would let happen."""
    data = {"status": status} | ({"kind": kind} if kind else {})
    with connected(ask.settings()) as remit:
        answer = remit.call("review:list", data)
        while answer["next"]:
            page = remit.call("review:list", data | {"after": answer["next"]})
            items = answer["items"] + page["items"]
            answer = {"items": items, "total": len(items), "next": page["next"]}
    if ask.as_json:
        print_json(answer)
        return
    for item in answer["items"]:
        for line in _lines(item):
            say(line)
    say(f"{answer['total']} {status}")
    first = answer["items"][0]["id"] if answer["items"] else "ID"
    next_step(f"review approve {first}")


def _lines(item: dict[str, Any]) -> list[str]:
    note = [f"    {item['decided_by']}: {item['note'] or 'no note'}"] if item["decided_by"] else []
    if item["kind"] == "capability":
        given = ", ".join([*item["grants"], *item["claude_tools"]]) or "nothing"
        return [f"{item['id']}", f"    would grant: {given}", *note]
    if item["kind"] == "card":
        where = f"    {item['file']} ({item['source']}), suspicious to {item['score']} of 100"
        return [item["id"], where, *(f"    {reason}" for reason in item["reasons"]), *note]
    if item["kind"] == "tool":
        return [*_tool_lines(item), *note]
    data = msgspec.json.encode(item["data"]).decode()
    until = datetime.fromtimestamp(item["expires_at"]).astimezone().strftime("%H:%M:%S")
    lapses = "lapsed" if item["status"] == "lapsed" else "lapses"
    asked_by = f"    asked by {item['requested_by']}{_where(item)}, {lapses} at {until}"
    return [f"{item['id']}  {item['event']} {data}", asked_by, *note]


def _where(item: dict[str, Any]) -> str:
    return f" in the session {item['session']}" if item["session"] else ""


def _tool_lines(item: dict[str, Any]) -> list[str]:
    """What a yes to an outside tool would be a yes to: all of it, or all that has changed."""
    mark = item["fingerprint"][:_MARK]
    lines = [
        f"{item['id']}@{mark}",
        f"    {item['event']}, {item['effect'] or 'no effect known'}"
        + (", gone from its server" if item["gone"] else ""),
        *(f"    {reason}" for reason in item["reasons"]),
    ]
    for change in item["diff"]:
        sides = [("-", change["old"]), ("+", change["new"])]
        lines.append(f"    {change['field']}:")
        for sign, text in sides:
            lines += [f"      {sign} {line}" for line in (text or "").split("\n") if text]
    return lines


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


def _decide(ask: Asked, words: tuple[str, ...], decision: str, note: str) -> None:
    ids = ids_in(words)
    answers, refused = _decided(ask, ids, decision, note)
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
    ask: Asked, ids: list[str], decision: str, note: str
) -> tuple[list[dict[str, Any]], list[tuple[str, RemitError]]]:
    """What came of each; of several, one that is refused does not stop the others."""
    answers, refused = [], []
    for name in ids:
        try:
            with connected(ask.settings()) as remit:
                data = {"id": name, "decision": decision, "note": note}
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
        who = f"{answer['requested_by']}{_where(answer)}"
        say(f"{answer['status']}: {answer['event']} for {who}, once")
    elif answer["kind"] == "card":
        may = "may" if answer["status"] == "approved" else "is not to"
        say(f"{answer['status']}: the card {answer['card']} {may} be injected as it is now")
    elif answer["kind"] == "tool":
        may = "may" if answer["status"] == "approved" else "may not"
        names_ = ", ".join(
            f"{one['tool']}@{one['fingerprint'][:_MARK]}" for one in answer["decided"]
        )
        say(f"{answer['status']}: of {answer['upstream']} {may} be called: {names_}")
        say(f"  revision {answer['revision']} is in force")
    else:
        verb = "gets" if answer["status"] == "approved" else "does not get"
        events = ", ".join([*answer["grants"], *answer["claude_tools"]]) or "nothing"
        say(f"{answer['status']}: {answer['profile']} {verb} {events}")
        say(f"  revision {answer['revision']} is in force")


@review.command()
@click.argument("id", nargs=-1, required=True, shell_complete=completion.reviews)
@click.option("--note", default="", help="Why; whoever asked is told.")
@asked
def approve(ask: Asked, id: tuple[str, ...], *, note: str) -> None:  # noqa: A002 - as shown
    """Approve calls by ID; capabilities: PROFILE CAPABILITY; card ID; or tool SERVER/TOOL."""
    _decide(ask, id, "approve", note)


@review.command()
@click.argument("id", nargs=-1, required=True, shell_complete=completion.reviews)
@click.option("--note", default="", help="Why; whoever asked is told.")
@asked
def reject(ask: Asked, id: tuple[str, ...], *, note: str) -> None:  # noqa: A002 - as shown
    """Reject calls by ID; capabilities: PROFILE CAPABILITY; card ID; or tool SERVER/TOOL."""
    _decide(ask, id, "reject", note)
