"""Reviews as people read them: a table with one line each, or everything that a yes would allow."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

MARK = 12
"""How much of a fingerprint is shown; it is enough to name one."""
_WIDTH = 100
"""Characters of what is said about one review; `--full` says all of it."""


def table(items: list[dict[str, Any]]) -> Iterator[str]:
    """One line for each review: its id, what it does or is, and what matters most about it."""
    rows = [_row(item) for item in items]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(2)]
    for name, what, about in rows:
        text = about if len(about) <= _WIDTH else f"{about[: _WIDTH - 1].rstrip()}…"
        yield f"{name:{widths[0]}}  {what:{widths[1]}}  {text}".rstrip()


def _row(item: dict[str, Any]) -> tuple[str, str, str]:
    if item["kind"] == "tool":
        return f"{item['id']}@{item['fingerprint'][:MARK]}", _effect(item), _about_tool(item)
    if item["kind"] == "capability":
        return item["id"], "capability", f"would grant {_given(item)}"
    if item["kind"] == "card":
        reasons = "; ".join(item["reasons"])
        return item["id"], "card", f"suspicious to {item['score']} of 100: {reasons}"
    data = msgspec.json.encode(item["data"]).decode()
    return item["id"], item["event"], f"{item['requested_by']}{where(item)}: {data}"


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


def _given(item: dict[str, Any]) -> str:
    return ", ".join([*item["grants"], *item["claude_tools"]]) or "nothing"


def where(item: dict[str, Any]) -> str:
    """The session of a call, if it names one."""
    return f" in the session {item['session']}" if item["session"] else ""


def in_full(item: dict[str, Any]) -> list[str]:
    """Everything that a yes would let happen."""
    note = [f"    {item['decided_by']}: {item['note'] or 'no note'}"] if item["decided_by"] else []
    if item["kind"] == "capability":
        return [f"{item['id']}", f"    would grant: {_given(item)}", *note]
    if item["kind"] == "card":
        source = f"    {item['file']} ({item['source']}), suspicious to {item['score']} of 100"
        return [item["id"], source, *(f"    {reason}" for reason in item["reasons"]), *note]
    if item["kind"] == "tool":
        return [*_tool_lines(item), *note]
    data = msgspec.json.encode(item["data"]).decode()
    until = datetime.fromtimestamp(item["expires_at"]).astimezone().strftime("%H:%M:%S")
    lapses = "lapsed" if item["status"] == "lapsed" else "lapses"
    asked_by = f"    asked by {item['requested_by']}{where(item)}, {lapses} at {until}"
    return [f"{item['id']}  {item['event']} {data}", asked_by, *note]


def _tool_lines(item: dict[str, Any]) -> list[str]:
    """What a yes to an outside tool would be a yes to: all of it, or all that has changed."""
    lines = [
        f"{item['id']}@{item['fingerprint'][:MARK]}",
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
