"""The key `launcher` of a composition, and the commands that an operator allows to be started."""

import os
from collections.abc import Iterable
from typing import Any

import msgspec

from remit.config.strict.kinds import (
    BAD,
    ChoiceKind,
    Field,
    ListKind,
    RecordKind,
    Report,
    TextKind,
    WholeKind,
)
from remit.config.strict.yaml import Mapping, Node, Scalar
from remit.errors import DeniedError, Place, Problem, UnavailableError
from remit.model.launch import (
    MAX_RESTARTS,
    READY,
    RESTARTS,
    SETTABLE,
    Launch,
    LaunchEntry,
    LauncherText,
    LaunchRequest,
    Template,
)
from remit.model.names import did_you_mean
from remit.policy.catalogue import Catalogue

NO_LAUNCHER = "none"
"""Starts nothing, whatever the profiles start that this one builds on."""


class EnvironmentKind(msgspec.Struct, frozen=True):
    """`{NAME: text}`; who the process is, is not for a profile to say."""

    name: TextKind = TextKind(pattern=SETTABLE, what="a variable that a profile may set")
    value: TextKind = TextKind(Template)

    def read(self, node: Node, report: Report) -> Any:
        """Read every pair, also after a bad one."""
        if not isinstance(node, Mapping):
            report.add(node.place, "wrong_type", "expected a mapping", "write {NAME: text}")
            return BAD
        pairs = [(self.name.read(k, report), self.value.read(v, report)) for k, v in node.pairs]
        return tuple(pair for pair in pairs if BAD not in pair)

    def schema(self) -> dict[str, Any]:
        """An object of strings."""
        return {
            "type": "object",
            "propertyNames": self.name.schema(),
            "additionalProperties": self.value.schema(),
        }


class LauncherKind(msgspec.Struct, frozen=True):
    """A ready launcher by name, or `{command | ready, args, env, cwd, restart, max_restarts}`."""

    def read(self, node: Node, report: Report) -> Any:
        """Read either form."""
        if isinstance(node, Scalar):
            name: Any = _NAMES.read(node, report)
            if name is BAD:
                return BAD
            return LauncherText(place=node.place, ready="" if name == NO_LAUNCHER else name)
        values = _MAPPING.read(node, report)
        if values is BAD:
            return BAD
        if isinstance(node, Mapping) and len({key.text for key, _ in node.pairs} & _STARTS) != 1:
            message = "a launcher has either 'command' or 'ready'"
            hint = f"write the command, or one of {', '.join(READY)}"
            report.add(node.place, "launcher_command", message, hint)
            return BAD
        return LauncherText(place=node.place, **values)

    def schema(self) -> dict[str, Any]:
        """A word or an object with one of the two."""
        one = [{"required": [name]} for name in sorted(_STARTS)]
        return {"anyOf": [_NAMES.schema(), _MAPPING.schema() | {"oneOf": one}]}


_NAMES = ChoiceKind((*READY, NO_LAUNCHER))
_STARTS = frozenset({"command", "ready"})
_MAPPING = RecordKind(
    {
        "command": Field(
            TextKind(pattern=r"[^\x00{}]+", what="a command without variables"),
            "A name on PATH or a full path, which the setting launch_commands lists",
        ),
        "ready": Field(ChoiceKind(tuple(READY)), "A launcher that works out arguments by itself"),
        "args": Field(ListKind(TextKind(Template)), "Arguments; a ready launcher adds its own"),
        "env": Field(EnvironmentKind(), "Variables of the process"),
        "cwd": Field(TextKind(Template), "The folder in which it runs"),
        "restart": Field(ChoiceKind(RESTARTS), "What to do when it ends; never when absent"),
        "max_restarts": Field(WholeKind(0, MAX_RESTARTS), "How often it is started again"),
    },
    lambda values, _node: values,
    "a launcher",
)
LAUNCHER = LauncherKind()


HINT = "an operator lists it in the setting launch_commands"


class Commands:
    """The operator's list. A command is looked for at each start: it may be installed later."""

    def __init__(self, entries: Iterable[LaunchEntry]) -> None:
        self._entries = {entry.name: entry for entry in entries}

    def launch(self, request: LaunchRequest) -> Launch:
        """What a request starts.

        Raises:
            DeniedError: the operator lists no command of that name.
            InvalidDataError: the values do not fit its placeholders.
        """
        entry = self._entries.get(request.command)
        if entry is None:
            message = f"the command {request.command!r} is not allowed to be launched"
            hint = f"a request names an entry of the list launch_commands; {HINT}"
            raise DeniedError(message, reason="no_grant", hint=hint)
        return entry.launch(request)

    def path_of(self, launch: Launch) -> str:
        """The full path of what is to be started.

        Raises:
            DeniedError: the operator does not list it.
            UnavailableError: it is listed, and not installed.
        """
        path = _find(launch.starts)
        if path is not None and path in {_find(one.starts) for one in self._entries.values()}:
            return path
        if any(launch.starts == entry.starts for entry in self._entries.values()):
            raise UnavailableError(
                f"the command {launch.starts!r} is listed in launch_commands, but not installed",
                hint="install it, or give its full path in launch_commands",
                details={"reason": "not_installed"},
            )
        message = f"the command {launch.starts!r} is not allowed to be launched"
        hint = did_you_mean(launch.starts, self._entries) or HINT
        raise DeniedError(message, reason="no_grant", hint=hint)

    def missing(self) -> list[LaunchEntry]:
        """The entries whose command is not installed, in their order."""
        return [entry for entry in self._entries.values() if _find(entry.starts) is None]


def _find(name: str) -> str | None:
    """A full path, so that it means the same in the folder where the process runs."""
    import shutil  # noqa: PLC0415 - 2 ms, and most definitions launch nothing

    found = shutil.which(name) if name else None
    return None if found is None else os.path.abspath(found)  # noqa: PTH100 - keeps links


def launcher_warnings(catalogue: Catalogue, commands: Commands) -> list[Problem]:
    """Profiles whose process would not be started as they are; each launcher is told once."""
    found: dict[tuple[Place, str], Problem] = {}
    for profile, grant in catalogue.grants.items():
        placed = grant.launcher
        if placed is None or not placed.launch.starts:
            continue
        problem = _not_startable(placed.launch, placed.place, commands)
        declared = catalogue.variables.get(profile, {})
        free = sorted(name for name in placed.variables if not declared[name].is_bounded)
        problems = [*([problem] if problem else []), *(_free(n, placed.place) for n in free)]
        found |= {(one.place, one.message): one for one in problems}
    return [found[key] for key in sorted(found)]


def _not_startable(launch: Launch, place: Place, commands: Commands) -> Problem | None:
    try:
        commands.path_of(launch)
    except UnavailableError as error:
        return Problem(place, "command_not_installed", error.message, error.hint, "warning")
    except DeniedError:
        message = f"the command {launch.starts!r} may not be launched here"
        hint = HINT if _find(launch.starts) else f"install it; {HINT}"
        return Problem(place, "command_not_allowed", message, hint, "warning")
    return None


def _free(name: str, place: Place) -> Problem:
    return Problem(
        place,
        "free_variable",
        f"no request can set {name!r}: it reaches a command, and may be any text",
        "give the variable a pattern or allowed_values",
        "warning",
    )


def list_warnings(commands: Commands, origin: str) -> list[Problem]:
    """Entries of the list whose command is not installed, placed where the list is written."""
    file, colon, line = origin.rpartition(":")
    place = Place(file, int(line)) if colon and line.isdecimal() else Place(origin)
    return [
        Problem(
            place,
            "command_not_installed",
            f"the command {entry.starts!r} is listed in launch_commands, but not installed",
            "install it, or give its full path in launch_commands",
            "warning",
        )
        for entry in commands.missing()
    ]
