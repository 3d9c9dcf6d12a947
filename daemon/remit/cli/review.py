"""What waits for somebody's yes: review list, review approve, review reject."""

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click
import msgspec

from remit.cli.connection import connected
from remit.cli.options import SharedOptions, completing, with_options
from remit.cli.outcome import UNREACHABLE, exit_code, next_step, print_json, say
from remit.errors import RemitError
from remit.model.limits import EFFECTS, Effect

_CALL = re.compile(r"[0-9a-f]{12}")
"""The id of a call that waits."""
_PAIR = 2
_MARK = 12
"""How much of a fingerprint is shown; it is enough to name one."""
_WIDTH = 100
"""Characters of what is said about one review; `--full` says all of it."""


@click.group()
def review() -> None:
    """Approve or reject calls that wait, capabilities, cards and tools; and what was learned."""


@review.command("list")
@click.option(
    "--status",
    type=click.Choice(["pending", "approved", "rejected", "lapsed", "expired"]),
    default="pending",
    help="Those that wait, those that were decided, or calls that lapsed.",
)
@click.option(
    "--kind",
    type=click.Choice(["approval", "capability", "card", "lesson", "tool"]),
    help="Only one kind; lessons are listed by this alone.",
)
@click.option("--effect", type=click.Choice(EFFECTS), help="Only upstream tools that do this.")
@click.option("--full", is_flag=True, help="All that a yes would allow, with each change.")
@with_options
def list_(
    shared: SharedOptions, *, status: str, kind: str | None, effect: Effect | None, full: bool
) -> None:
    """List what waits, a line each; --full shows everything that a yes would let happen."""
    data = {"status": status} | ({"kind": kind} if kind else {})
    data |= {"effect": effect} if effect else {}
    with connected(shared.settings()) as remit:
        answer = remit.call("review:list", data)
        while answer["next"]:
            page = remit.call("review:list", data | {"after": answer["next"]})
            items = answer["items"] + page["items"]
            answer = answer | {"items": items, "total": len(items), "next": page["next"]}
    if shared.as_json:
        print_json(answer)
        return
    items = answer["items"]
    for line in [line for item in items for line in _in_full(item)] if full else _table(items):
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


def _decide(shared: SharedOptions, words: tuple[str, ...], **decision: str | None) -> None:
    ids = ids_in(words)
    answers, refused = _decided(shared, ids, decision)
    if shared.as_json:
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
    shared: SharedOptions, ids: list[str], decision: dict[str, str | None]
) -> tuple[list[dict[str, Any]], list[tuple[str, RemitError]]]:
    """What came of each; of several, one that is refused does not stop the others."""
    answers, refused = [], []
    for name in ids:
        try:
            with connected(shared.settings()) as remit:
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
        who = f"{answer['requested_by']}{_session(answer)}"
        say(f"{answer['status']}: {answer['event']} for {who}, once")
    elif answer["kind"] == "card":
        may = "may" if answer["status"] == "approved" else "is not to"
        say(f"{answer['status']}: the card {answer['card']} {may} be injected as it is now")
    elif answer["kind"] == "lesson":
        whom = "everybody" if answer["status"] == "approved" else "nobody but who teaches it"
        say(f"{answer['status']}: {answer['query']!r} finds {answer['subject']} for {whom}")
    elif answer["kind"] == "tool":
        may = "may" if answer["status"] == "approved" else "may not"
        names_ = ", ".join(
            f"{one['tool']}@{one['fingerprint'][:_MARK]}" for one in answer["decided"]
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
@click.argument("id", nargs=-1, required=True, shell_complete=completing("review"))
@click.option("--note", default="", help="Why; whoever asked is told.")
@click.option("--effect", type=click.Choice(EFFECTS), help="Of 'tool:SERVER/*' only these.")
@with_options
def approve(
    shared: SharedOptions,
    id: tuple[str, ...],  # noqa: A002 - as shown
    *,
    note: str,
    effect: Effect | None,
) -> None:
    """Approve calls by ID; capabilities: PROFILE CAPABILITY; card ID; or tool SERVER/TOOL."""
    _decide(shared, id, decision="approve", note=note, effect=effect)


@review.command()
@click.argument("id", nargs=-1, required=True, shell_complete=completing("review"))
@click.option("--note", default="", help="Why; whoever asked is told.")
@click.option("--effect", type=click.Choice(EFFECTS), help="Of 'tool:SERVER/*' only these.")
@with_options
def reject(
    shared: SharedOptions,
    id: tuple[str, ...],  # noqa: A002 - as shown
    *,
    note: str,
    effect: Effect | None,
) -> None:
    """Reject calls by ID; capabilities: PROFILE CAPABILITY; card ID; or tool SERVER/TOOL."""
    _decide(shared, id, decision="reject", note=note, effect=effect)


def _table(items: list[dict[str, Any]]) -> Iterator[str]:
    """One line for each review: its id, what it does or is, and what matters most about it."""
    rows = [_row(item) for item in items]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    for name, what, about in rows:
        text = about if len(about) <= _WIDTH else f"{about[: _WIDTH - 1].rstrip()}…"
        yield f"{name:{widths[0]}}  {what:{widths[1]}}  {text}".rstrip()


def _row(item: dict[str, Any]) -> tuple[str, str, str]:
    if item["kind"] == "tool":
        return f"{item['id']}@{item['fingerprint'][:_MARK]}", _effect(item), _about_tool(item)
    if item["kind"] == "capability":
        return item["id"], "capability", f"would grant {_given(item)}"
    if item["kind"] == "card":
        reasons = "; ".join(item["reasons"])
        return item["id"], "card", f"suspicious to {item['score']} of 100: {reasons}"
    if item["kind"] == "lesson":
        return item["id"], item["subject"], f"{item['query']!r}: {_taught(item)}"
    data = msgspec.json.encode(item["data"]).decode()
    return item["id"], item["event"], f"{item['requested_by']}{_session(item)}: {data}"


def _effect(item: dict[str, Any]) -> str:
    if item["effect"] is None:
        return "no effect known"
    return str(item["effect"]) + ("" if item["effect_known"] else "?")


def _about_tool(item: dict[str, Any]) -> str:
    gone = ["gone from its server"] if item["gone"] else []
    if item["is_new"]:
        said = [change["new"] for change in item["diff"] if change["field"] == "description"]
        lines = (said[0] or "").strip().splitlines() if said else []
        return "; ".join([*gone, *item["reasons"]]) + (f": {lines[0]}" if lines else "")
    fields = ", ".join(change["field"] for change in item["diff"])
    changed = [f"changes {fields}"] if fields else []
    return "; ".join([*gone, *item["reasons"], *changed])


def _taught(item: dict[str, Any]) -> str:
    return f"taught by {', '.join(item['by']) or 'nobody any more'}"


def _given(item: dict[str, Any]) -> str:
    return ", ".join([*item["grants"], *item["claude_tools"]]) or "nothing"


def _session(item: dict[str, Any]) -> str:
    """The session of a call, if it names one."""
    return f" in the session {item['session']}" if item["session"] else ""


def _in_full(item: dict[str, Any]) -> list[str]:
    """Everything that a yes would let happen."""
    note = [f"    {item['decided_by']}: {item['note'] or 'no note'}"] if item["decided_by"] else []
    if item["kind"] == "capability":
        return [f"{item['id']}", f"    would grant: {_given(item)}", *note]
    if item["kind"] == "card":
        source = f"    {item['file']} ({item['source']}), suspicious to {item['score']} of 100"
        return [item["id"], source, *(f"    {reason}" for reason in item["reasons"]), *note]
    if item["kind"] == "tool":
        return [*_tool_lines(item), *note]
    if item["kind"] == "lesson":
        return [
            item["id"],
            f"    {item['query']!r} finds {item['subject']}",
            f"    {_taught(item)}",
        ]
    data = msgspec.json.encode(item["data"]).decode()
    until = datetime.fromtimestamp(item["expires_at"]).astimezone().strftime("%H:%M:%S")
    lapses = "lapsed" if item["status"] == "lapsed" else "lapses"
    asked_by = f"    asked by {item['requested_by']}{_session(item)}, {lapses} at {until}"
    return [f"{item['id']}  {item['event']} {data}", asked_by, *note]


def _tool_lines(item: dict[str, Any]) -> list[str]:
    """What a yes to an upstream tool would be a yes to: all of it, or all that has changed."""
    lines = [
        f"{item['id']}@{item['fingerprint'][:_MARK]}",
        f"    {item['event']}, {_effect(item)}"
        + (", gone from its server" if item["gone"] else ""),
        *(f"    {reason}" for reason in item["reasons"]),
    ]
    for change in item["diff"]:
        sides = [("-", change["old"]), ("+", change["new"])]
        lines.append(f"    {change['field']}:")
        for sign, text in sides:
            lines += [f"      {sign} {line}" for line in (text or "").split("\n") if text]
    return lines
