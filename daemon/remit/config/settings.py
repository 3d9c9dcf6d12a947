"""The daemon's settings, where each came from, and everything that is wrong with them.

Flags beat REMIT_* variables, these beat ./remit.toml, that beats the user's remit.toml, and that
beats the defaults. `SETTINGS` is the one table: parsing, the reference page and `remit config` all
read it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from remit.config.home import default_home
from remit.errors import SettingsError
from remit.model.suggest import did_you_mean, nearest

FILE_NAME = "remit.toml"
PREFIX = "REMIT_"
# What an agent's own process is given; these speak to the client, not to the daemon.
CLIENT_VARIABLES = frozenset(
    {"REMIT_AGENT_ID", "REMIT_KEY", "REMIT_TOKEN", "REMIT_SERVER_KEY", "REMIT_INVOKED_AS"}
)

_MAX_FILE_BYTES = 1024 * 1024
_MAX_SECONDS = 86_400
_MAX_PORT = 65_535
# Compiled when they are needed: most commands start without such a setting.
_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_ENDPOINT = r"ipc:///.+|tcp://(\[[0-9A-Fa-f:.]+\]|[\w.*-]+):(?P<port>[0-9]{1,5})"

Kind = Literal[
    "path",
    "paths",
    "names",
    "commands",
    "endpoint",
    "choice",
    "seconds",
    "whole",
    "share",
    "switch",
]


class Setting(msgspec.Struct, frozen=True):
    """One row of the table.

    `low` and `high` bound a whole number, `choices` are the words of a choice.
    """

    name: str
    kind: Kind
    default: Any
    doc: str
    choices: tuple[str, ...] = ()
    high: int = 0
    low: int = 1

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """The option that sets it on the command line."""
        return "--" + self.name.replace("_", "-")


SETTINGS: tuple[Setting, ...] = (
    Setting("home", "path", None, "State directory; empty: the XDG state directory."),
    Setting("catalogue", "path", None, "Capability definitions; empty: the shipped starter."),
    Setting("compositions", "path", None, "Directory of profiles; empty: the shipped starter."),
    Setting("handlers", "names", (), "Python modules with further event handlers."),
    Setting("handler_paths", "paths", (), "Directories where those modules are looked for."),
    Setting("endpoint", "endpoint", "", "Where to listen; empty: an ipc socket in the home."),
    Setting(
        "log_format",
        "choice",
        "auto",
        "How to log; auto: pretty on a terminal, else json.",
        choices=("auto", "json", "pretty"),
    ),
    Setting(
        "log_level",
        "choice",
        "info",
        "The least important message that is logged.",
        choices=("debug", "info", "warning", "error"),
    ),
    Setting(
        name="watch",
        kind="switch",
        default=True,
        doc="Whether edited definitions come in force by themselves.",
    ),
    Setting(
        "watch_debounce_ms",
        "whole",
        300,
        "Milliseconds without a further edit before definitions are read.",
        high=60_000,
    ),
    Setting("request_timeout", "seconds", 30.0, "Seconds a handler may take."),
    Setting("drain_timeout", "seconds", 4.0, "Seconds that running requests get at shutdown."),
    Setting("max_in_flight", "whole", 256, "Requests that may run at once.", high=65_536),
    Setting("audit_sample", "share", 0.0, "Share of allowed reads that the audit keeps, 0 to 1."),
    Setting(
        "audit_keep",
        "whole",
        1_000_000,
        "Rows the audit keeps at hand, older ones are archived; 0: all.",
        low=0,
        high=1_000_000_000,
    ),
    Setting("approval_timeout", "seconds", 300.0, "Seconds until an unanswered request lapses."),
    Setting("approval_wait", "seconds", 20.0, "Seconds that a call waits for its approval."),
    Setting("launch_commands", "commands", (), "Commands that may be started for agents."),
    Setting("state_value_limit", "whole", 262_144, "Bytes of one state value.", high=16_777_216),
)


class Origin(msgspec.Struct, frozen=True):
    """Where a value came from: a flag, a variable, `file:line`, or `default`."""

    kind: Literal["flag", "environment", "file", "default"]
    where: str

    def __str__(self) -> str:
        return self.where


class Settings(msgspec.Struct, frozen=True):
    """Every setting with a value that can be used; `load_settings` is the way to get one."""

    home: Path
    catalogue: Path | None
    compositions: Path | None
    handlers: tuple[str, ...]
    handler_paths: tuple[Path, ...]
    endpoint: str
    log_format: Literal["auto", "json", "pretty"]
    log_level: Literal["debug", "info", "warning", "error"]
    watch: bool
    watch_debounce_ms: int
    request_timeout: float
    drain_timeout: float
    max_in_flight: int
    audit_sample: float
    audit_keep: int
    approval_timeout: float
    approval_wait: float
    launch_commands: tuple[str, ...]
    state_value_limit: int
    origins: dict[str, Origin]


class _Given(msgspec.Struct, frozen=True):
    """A value as somebody wrote it; relative paths in it start at `base`."""

    name: str
    value: Any
    origin: Origin
    base: Path


class _Problems(list[dict[str, str]]):
    def note(self, where: object, message: str, hint: str = "") -> None:
        self.append({"where": str(where), "message": message, "hint": hint})


class _WrongError(ValueError):
    """What a value should have been."""


def load_settings(flags: Mapping[str, Any], env: Mapping[str, str], cwd: str) -> Settings:
    """Read all sources and let the strongest win. A flag that is None was not given.

    A weaker value is checked even when a stronger one hides it: a mistake must not lie in wait.

    Raises:
        SettingsError: with every problem of every source; `details.problems` lists them.
    """
    here = Path(cwd).absolute()
    files = dict.fromkeys([user_file(env), here / FILE_NAME])  # the same file is read once
    problems = _Problems()
    given = [value for path in files for value in _from_file(path, problems)]
    given += [*_from_environment(env, here, problems), *_from_flags(flags, here)]
    values: dict[str, Any] = {row.name: row.default for row in SETTINGS}
    origins = {row.name: Origin("default", "default") for row in SETTINGS}
    for one in given:
        _apply(one, values, origins, problems)
    if problems:
        raise _refusal(problems)
    values["home"] = values["home"] or default_home(env)
    return Settings(**values, origins=origins)


def user_file(env: Mapping[str, str]) -> Path:
    """The user's own settings file, whether or not it exists."""
    folder = Path(env.get("XDG_CONFIG_HOME", ""))
    if not folder.is_absolute():
        folder = Path(env.get("HOME") or Path.home(), ".config")
    return folder / "remit" / FILE_NAME


def _apply(
    one: _Given, values: dict[str, Any], origins: dict[str, Origin], problems: _Problems
) -> None:
    row = next((row for row in SETTINGS if row.name == one.name), None)
    if row is None:
        hint = did_you_mean(one.name, [row.name for row in SETTINGS])
        problems.note(one.origin, f"{one.name!r} is not a setting", hint)
        return
    try:
        values[row.name] = _READERS[row.kind](row, one.value, one.base)
        origins[row.name] = one.origin
    except _WrongError as error:
        message = f"{row.name} must be {error}, not {one.value!r}"
        problems.note(one.origin, message, did_you_mean(str(one.value), row.choices))


def _from_flags(flags: Mapping[str, Any], here: Path) -> Iterator[_Given]:
    for name, value in flags.items():
        if value is not None:
            origin = Origin("flag", "--" + name.replace("_", "-"))
            yield _Given(name, _from_text(name, value), origin, here)


def _from_environment(env: Mapping[str, str], here: Path, problems: _Problems) -> Iterator[_Given]:
    known = {row.variable: row.name for row in SETTINGS}
    for variable in sorted(env):
        if not variable.startswith(PREFIX) or not env[variable]:
            continue  # an empty variable counts as unset, as everywhere in XDG
        if variable in known:
            name = known[variable]
            origin = Origin("environment", variable)
            yield _Given(name, _from_text(name, env[variable]), origin, here)
        elif variable not in CLIENT_VARIABLES:
            # Other programs may own REMIT_ names too: only what looks like ours is a mistake.
            near = nearest(variable.removeprefix(PREFIX).lower(), known.values())
            if near:
                hint = f"did you mean {PREFIX}{near[0].upper()}?"
                problems.note(variable, "is not a setting", hint)


def _from_file(path: Path, problems: _Problems) -> Iterator[_Given]:
    if not path.is_file():
        return
    import tomllib  # noqa: PLC0415 - 3 ms that only somebody with a file has to pay

    try:
        text = _read_text(path)
        content = tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else path
        problems.note(where, f"cannot be read as TOML: {error}")
        return
    for name, value in content.items():
        origin = Origin("file", f"{path}:{_line_of(name, text)}")
        yield _Given(name, value, origin, path.parent)


def _read_text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise ValueError(f"larger than {_MAX_FILE_BYTES:,} bytes")
    return data.decode()


def _line_of(name: str, text: str) -> int:
    """The line that sets `name`; tomllib does not tell, and the first that looks so is it."""
    quoted = re.escape(name)
    found = re.search(rf"^[ \t]*(\[+[ \t]*)?[\"']?{quoted}[\"']?[ \t]*[=.\]]", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _from_text(name: str, value: object) -> object:
    """What a TOML file would have given for the text of a flag or variable."""
    row = next((row for row in SETTINGS if row.name == name), None)
    if row is None or not isinstance(value, str):
        return value
    if row.kind in {"names", "paths", "commands"}:
        return [part.strip() for part in value.split(",") if part.strip()]
    if row.kind == "switch":
        return {"true": True, "false": False}.get(value, value)
    if row.kind in {"seconds", "whole", "share"}:
        try:
            return int(value) if row.kind == "whole" else float(value)
        except ValueError:
            return value  # its reader says what it should have been
    return value


def _read_path(row: Setting, value: object, base: Path) -> Path | None:
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or "\0" in value:
        raise _WrongError("a path")
    return base / Path(value).expanduser() if value else None


def _read_commands(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    names = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(name, str) and name and "\0" not in name for name in names):
        raise _WrongError('a list of commands, as in ["claude"]')
    return tuple(names)


def _read_paths(row: Setting, value: object, base: Path) -> tuple[Path, ...]:
    if not isinstance(value, list | tuple):
        raise _WrongError('a list of directories, as in ["my_tools"]')
    return tuple(path for one in value if (path := _read_path(row, one, base)) is not None)


def _read_names(row: Setting, value: object, base: Path) -> tuple[str, ...]:
    names = value if isinstance(value, list | tuple) else [None]
    if not all(isinstance(name, str) and re.fullmatch(_MODULE, name) for name in names):
        raise _WrongError('a list of module names, as in ["my_tools.handlers"]')
    return tuple(names)


def _read_endpoint(row: Setting, value: object, base: Path) -> str:
    found = re.fullmatch(_ENDPOINT, value) if isinstance(value, str) else None
    if value != "" and (found is None or int(found["port"] or 0) > _MAX_PORT):
        raise _WrongError("empty, or an address like 'tcp://127.0.0.1:7420'")
    return str(value)


def _read_choice(row: Setting, value: object, base: Path) -> str:
    if value not in row.choices:
        raise _WrongError(f"one of {', '.join(row.choices)}")
    return str(value)


def _read_seconds(row: Setting, value: object, base: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _WrongError("a number of seconds")
    if not 0 < value <= _MAX_SECONDS:  # also false for NaN
        raise _WrongError(f"more than 0 and at most {_MAX_SECONDS} seconds")
    return float(value)


def _read_share(row: Setting, value: object, base: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _WrongError("a number from 0 to 1")
    return float(value)


def _read_whole(row: Setting, value: object, base: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not row.low <= value <= row.high:
        raise _WrongError(f"a whole number from {row.low} to {row.high}")
    return value


def _read_switch(row: Setting, value: object, base: Path) -> bool:
    if not isinstance(value, bool):
        raise _WrongError("true or false")
    return value


_READERS: dict[Kind, Callable[[Setting, Any, Path], Any]] = {
    "path": _read_path,
    "paths": _read_paths,
    "commands": _read_commands,
    "names": _read_names,
    "endpoint": _read_endpoint,
    "choice": _read_choice,
    "seconds": _read_seconds,
    "whole": _read_whole,
    "share": _read_share,
    "switch": _read_switch,
}


def _refusal(problems: _Problems) -> SettingsError:
    lines = [f"{one['where']}: {one['message']}" for one in problems]
    hints = dict.fromkeys(one["hint"] for one in problems if one["hint"])
    return SettingsError("\n".join(lines), hint="; ".join(hints), details={"problems": problems})
