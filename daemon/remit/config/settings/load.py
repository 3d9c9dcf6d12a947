"""The daemon's settings, where each came from, and everything that is wrong with them.

Flags beat REMIT_* variables, these beat ./remit.toml, that beats the user's remit.toml, and that
beats the defaults.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from remit.config.settings.home import default_home
from remit.config.settings.setting import PREFIX, WrongError, from_text, read_value
from remit.config.settings.table import SETTINGS, Origin, Settings
from remit.errors import SettingsError
from remit.model.names import did_you_mean, nearest

FILE_NAME = "remit.toml"
# What an agent's own process is given; these speak to the client, not to the daemon.
CLIENT_VARIABLES = frozenset(
    {"REMIT_AGENT_ID", "REMIT_KEY", "REMIT_TOKEN", "REMIT_SERVER_KEY", "REMIT_INVOKED_AS"}
)

_MAX_FILE_BYTES = 1024 * 1024


class _Assignment(msgspec.Struct, frozen=True):
    """A value as somebody wrote it; relative paths in it start at `base`."""

    name: str
    value: Any
    origin: Origin
    base: Path


class _Problems(list[dict[str, str]]):
    def note(self, where: object, message: str, hint: str = "") -> None:
        self.append({"where": str(where), "message": message, "hint": hint})


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
    one: _Assignment, values: dict[str, Any], origins: dict[str, Origin], problems: _Problems
) -> None:
    row = next((row for row in SETTINGS if row.name == one.name), None)
    if row is None:
        hint = did_you_mean(one.name, [row.name for row in SETTINGS])
        problems.note(one.origin, f"{one.name!r} is not a setting", hint)
        return
    try:
        values[row.name] = read_value(row, one.value, one.base)
        origins[row.name] = one.origin
    except WrongError as error:
        message = f"{row.name} must be {error}, not {one.value!r}"
        problems.note(one.origin, message, did_you_mean(str(one.value), row.choices))


def _from_flags(flags: Mapping[str, Any], here: Path) -> Iterator[_Assignment]:
    for name, value in flags.items():
        if value is not None:
            origin = Origin("flag", "--" + name.replace("_", "-"))
            yield _Assignment(name, _from_text(name, value), origin, here)


def _from_environment(
    env: Mapping[str, str], here: Path, problems: _Problems
) -> Iterator[_Assignment]:
    known = {row.variable: row.name for row in SETTINGS}
    for variable in sorted(env):
        if not variable.startswith(PREFIX) or not env[variable]:
            continue  # an empty variable counts as unset, as everywhere in XDG
        if variable in known:
            name = known[variable]
            origin = Origin("environment", variable)
            yield _Assignment(name, _from_text(name, env[variable]), origin, here)
        elif variable not in CLIENT_VARIABLES:
            # Other programs may own REMIT_ names too: only what looks like ours is a mistake.
            near = nearest(variable.removeprefix(PREFIX).lower(), known.values())
            if near:
                hint = f"did you mean {PREFIX}{near[0].upper()}?"
                problems.note(variable, "is not a setting", hint)


def _from_file(path: Path, problems: _Problems) -> Iterator[_Assignment]:
    if not path.is_file():
        return
    import tomllib  # noqa: PLC0415 - 3 ms that only somebody with a file has to pay

    try:
        text = _read_file(path)
        content = tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else path
        problems.note(where, f"cannot be read as TOML: {error}")
        return
    for name, value in content.items():
        origin = Origin("file", f"{path}:{_line_of(name, text)}")
        yield _Assignment(name, value, origin, path.parent)


def _read_file(path: Path) -> str:
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
    row = next((row for row in SETTINGS if row.name == name), None)
    return value if row is None or not isinstance(value, str) else from_text(row, value)


def _refusal(problems: _Problems) -> SettingsError:
    lines = [f"{one['where']}: {one['message']}" for one in problems]
    hints = dict.fromkeys(one["hint"] for one in problems if one["hint"])
    return SettingsError("\n".join(lines), hint="; ".join(hints), details={"problems": problems})
