"""The setting `launch_commands`: names of commands, and tables with what requests may fill in."""

import re
from typing import Any

import msgspec

from remit.model.agent import BLANK, READY, SETTABLE, LaunchEntry
from remit.model.schema import pattern_complaint

_READY = " or ".join(READY)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def read_entries(value: object) -> tuple[LaunchEntry, ...]:
    """Read the setting `launch_commands`: names of commands, and tables with placeholders.

    Raises:
        ValueError: it is none of this; the message says what it should have been.
    """
    items = value if isinstance(value, list | tuple) else [None]
    entries = tuple(map(_read_entry, items))
    names = [entry.name for entry in entries]
    if len(set(names)) < len(names):
        raise ValueError("a list of commands with different names")
    return entries


def _read_entry(item: Any) -> LaunchEntry:
    if isinstance(item, str) and item and "\0" not in item:
        return LaunchEntry.plain(item)
    try:
        entry = msgspec.convert(item, LaunchEntry)
    except msgspec.ValidationError as error:
        example = '["claude", {name = "worker", command = "/srv/worker"}]'
        raise ValueError(f"a list of commands, as in {example} ({error})") from error
    complaint = _complaint(entry)
    if complaint:
        raise ValueError(f"a list of commands that can be started: {entry.name!r} {complaint}")
    return entry


def _complaint(entry: LaunchEntry) -> str:
    """What is wrong with an entry that was written as a table."""
    fixed = (entry.command, *entry.env.values(), entry.cwd or "")
    complaints = (
        (_NAME.fullmatch(entry.name), "needs a name of at most 64 letters, digits and _.-"),
        (bool(entry.command) != bool(entry.ready), f"needs 'command', or 'ready' = {_READY}"),
        ("\0" not in "".join((*fixed, *entry.args)), "has a NUL byte"),
        ("{{" not in "".join(fixed), "has a placeholder outside of 'args'"),
        ((entry.cwd or "/").startswith("/"), "needs a full path as 'cwd'"),
        (all(re.fullmatch(SETTABLE, name) for name in entry.env), "sets what cannot be set"),
    )
    return next((told for fine, told in complaints if not fine), _placeholder_complaint(entry))


def _placeholder_complaint(entry: LaunchEntry) -> str:
    used = {name for arg in entry.args for name in BLANK.findall(arg)}
    for name in sorted(used ^ entry.placeholders.keys()):
        if name in used:
            return f"gives no pattern for {name!r}: write placeholders = {{{name} = '[a-z]+'}}"
        return f"has a pattern for {name!r}, which no argument holds as {{{{{name}}}}}"
    if any("{{" in BLANK.sub("", arg) for arg in entry.args):
        return "has an argument with '{{' that is no placeholder"
    return next(filter(None, map(pattern_complaint, entry.placeholders.values())), "")
