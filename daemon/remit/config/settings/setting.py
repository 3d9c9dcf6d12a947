"""One setting: what kind of value it takes, and how that is read."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import msgspec

from remit.model.launch import BLANK, READY, SETTABLE, LaunchEntry
from remit.model.paths import is_host_pattern
from remit.model.schema import pattern_complaint

PREFIX = "REMIT_"
_MAX_SECONDS = 86_400
_MAX_PORT = 65_535
# Compiled when they are needed: most commands start without such a setting.
_WORD = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_SHARE = rf"(?:\*|{_WORD})=(?:0(?:\.[0-9]{{1,6}})?|1(?:\.0{{1,6}})?)"
_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_ENDPOINT = r"ipc:///.+|tcp://(\[[0-9A-Fa-f:.]+\]|[\w.*-]+):(?P<port>[0-9]{1,5})"
# A host must be written: a port alone is served on loopback.
_ADDRESS = r"(?:(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)?:)?(?P<port>[0-9]{1,5})"
_ORIGIN = r"https?://[\w.-]+(?::[0-9]{1,5})?"
_CATALOGUE = r"https?://[!-\"$-~]{1,2000}(?:#sha256=[0-9a-f]{64})?"
_READY = " or ".join(READY)
LISTS = frozenset({"names", "paths", "commands", "hosts", "ids", "shares", "origins", "catalogues"})
_OTHERS = "Further settings"
_MEMBERS: dict[str, tuple[str, ...]] = {
    "Definitions": (
        "home",
        "catalogue",
        "compositions",
        "handler*",
        "capability_dirs",
        "extension_modules",
        "upstreams",
        "watch*",
    ),
    "Where it listens": ("endpoint", "http*", "mcp_*"),
    "Logs and audit": ("log_*", "audit_*", "denial*", "disk_*"),
    "Requests and approvals": ("request_*", "drain_*", "max_*", "approval_*"),
    "Processes of agents": ("launch_*",),
    "State and files": ("state_*", "file_*"),
    "Discovery": ("search", "embedder_*", "token_counter", "learn", "tenant", "discovery_*"),
    "Cards": ("card_*", "workspace_cards", "awareness*"),
    "Fetching": ("web_fetch_*",),
}
GROUPS: tuple[str, ...] = (*_MEMBERS, _OTHERS)
Kind = Literal[
    "path",
    "paths",
    "names",
    "ids",
    "shares",
    "commands",
    "hosts",
    "endpoint",
    "address",
    "origins",
    "catalogues",
    "choice",
    "word",
    "text",
    "seconds",
    "whole",
    "share",
    "switch",
]


class Setting(msgspec.Struct, frozen=True):
    """What is known of a setting beside its type; `name` is that of its field.

    `low` and `high` bound a whole number, `choices` are the words of a choice.
    """

    kind: Kind
    default: Any
    doc: str
    name: str = ""
    choices: tuple[str, ...] = ()
    high: int = 0
    low: int = 1
    separator: str = ","
    """What stands between the entries of a list in a flag or variable."""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """The option that sets it on the command line."""
        return "--" + self.name.replace("_", "-")


class WrongError(ValueError):
    """What a value should have been."""


def group_of(name: str) -> str:
    """The group of a setting, by its name."""
    found = (
        title
        for title, patterns in _MEMBERS.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    )
    return next(found, _OTHERS)


def from_text(row: Setting, value: str) -> object:
    """What a TOML file would have given for the text of a flag or variable."""
    if row.kind in LISTS:
        return [part.strip() for part in value.split(row.separator) if part.strip()]
    if row.kind == "switch":
        return {"true": True, "false": False}.get(value, value)
    if row.kind in {"seconds", "whole", "share"}:
        try:
            return int(value) if row.kind == "whole" else float(value)
        except ValueError:
            return value  # its reader says what it should have been
    return value


def read_value(row: Setting, value: object, base: Path) -> Any:
    """The value of a setting; relative paths in it start at `base`.

    Raises:
        WrongError: it is none of this kind; the message says what it should have been.
    """
    return _READERS[row.kind](row, value, base)


def _read_path(row: Setting, value: object, base: Path) -> Path | None:
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or "\0" in value:
        raise WrongError("a path")
    return base / Path(value).expanduser() if value else None


def _read_commands(row: Setting, value: object, base: Path) -> tuple[Any, ...]:
    if not value:
        return ()
    try:
        return read_entries(value)
    except ValueError as error:
        raise WrongError(str(error)) from error


def _read_paths(row: Setting, value: object, base: Path) -> tuple[Path, ...]:
    if not isinstance(value, list | tuple):
        raise WrongError('a list of directories, as in ["my_tools"]')
    return tuple(path for one in value if (path := _read_path(row, one, base)) is not None)


def _read_names(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    names = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(name, str) and re.fullmatch(_MODULE, name) for name in names):
        raise WrongError('a list of module names, as in ["my_tools.handlers"]')
    return tuple(names)


def _read_hosts(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    hosts = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(host, str) and is_host_pattern(host) for host in hosts):
        raise WrongError('a list of hosts, as in ["example.com", "*.example.org"]')
    return tuple(hosts)


def _read_ids(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    names = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(name, str) and re.fullmatch(_WORD, name) for name in names):
        raise WrongError('a list of ids, as in ["mail"]')
    return tuple(names)


def _read_shares(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    pairs = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(pair, str) and re.fullmatch(_SHARE, pair) for pair in pairs):
        raise WrongError('a list of names with numbers from 0 to 1, as in ["mail=0.4"]')
    return tuple(pairs)


def _read_endpoint(row: Setting, value: object, base: Path) -> str:
    found = re.fullmatch(_ENDPOINT, value) if isinstance(value, str) else None
    if value != "" and (found is None or int(found["port"] or 0) > _MAX_PORT):
        raise WrongError("empty, or an address like 'tcp://127.0.0.1:7420'")
    return str(value)


def _read_address(row: Setting, value: object, base: Path) -> str:
    found = re.fullmatch(_ADDRESS, value) if isinstance(value, str) else None
    if value != "" and (found is None or int(found["port"]) > _MAX_PORT):
        raise WrongError("empty, or an address like '127.0.0.1:7421'")
    return str(value)


def _read_origins(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    origins = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(one, str) and re.fullmatch(_ORIGIN, one) for one in origins):
        raise WrongError('a list of origins, as in ["https://app.example"]')
    return tuple(origins)


def _read_catalogues(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    urls = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(one, str) and re.fullmatch(_CATALOGUE, one) for one in urls):
        raise WrongError('a list of URLs, as in ["https://cards.example/team.json#sha256=64 hex"]')
    return tuple(urls)


def _read_choice(row: Setting, value: object, base: Path) -> str:
    if value not in row.choices:
        raise WrongError(f"one of {', '.join(row.choices)}")
    return str(value)


def _read_word(row: Setting, value: object, base: Path) -> str:
    if not isinstance(value, str) or not re.fullmatch(_WORD, value):
        raise WrongError("a word of at most 64 letters, digits and _.-")
    return value


def _read_text(row: Setting, value: object, base: Path) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise WrongError("text")
    return value


def _read_seconds(row: Setting, value: object, base: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongError("a number of seconds")
    if not 0 < value <= _MAX_SECONDS:  # also false for NaN
        raise WrongError(f"more than 0 and at most {_MAX_SECONDS} seconds")
    return float(value)


def _read_share(row: Setting, value: object, base: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise WrongError("a number from 0 to 1")
    return float(value)


def _read_whole(row: Setting, value: object, base: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not row.low <= value <= row.high:
        raise WrongError(f"a whole number from {row.low} to {row.high}")
    return value


def _read_switch(row: Setting, value: object, base: Path) -> bool:
    if not isinstance(value, bool):
        raise WrongError("true or false")
    return value


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
        (re.fullmatch(_WORD, entry.name), "needs a name of at most 64 letters, digits and _.-"),
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


_READERS: dict[Kind, Callable[[Setting, Any, Path], Any]] = {
    "path": _read_path,
    "paths": _read_paths,
    "commands": _read_commands,
    "hosts": _read_hosts,
    "names": _read_names,
    "ids": _read_ids,
    "shares": _read_shares,
    "endpoint": _read_endpoint,
    "address": _read_address,
    "origins": _read_origins,
    "catalogues": _read_catalogues,
    "choice": _read_choice,
    "word": _read_word,
    "text": _read_text,
    "seconds": _read_seconds,
    "whole": _read_whole,
    "share": _read_share,
    "switch": _read_switch,
}
