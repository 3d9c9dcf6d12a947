"""What is started for an agent: a command without a shell, as somebody may ask for it.

A launch is written by an operator in a list, by a profile or by a request. A request names an entry
of the operator's list and fills the placeholders of its arguments, each held to the pattern that
the entry gives it. It says nothing else about the process.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import msgspec

from remit.errors import InvalidDataError, Place
from remit.model.schema import MAX_VALUE, Name, matches

MAX_RESTARTS = 5

Restart = Literal["never", "on_failure", "always"]
RESTARTS: tuple[Restart, ...] = ("never", "on_failure", "always")

SETTABLE = r"(?!REMIT_|LD_)[A-Za-z_][A-Za-z0-9_]{0,127}"
"""The variables that a launch may set: neither who the process is, nor what it loads."""

Ready = Literal["", "claude"]
READY: dict[str, str] = {"claude": "claude"}
"""The ready launchers, each with the command that it starts."""

_OPEN = "{{"
BLANK = re.compile(r"\{\{\s*([a-zA-Z0-9_]+)\s*\}\}")
"""A placeholder, written as a variable of a profile is."""


class Launch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command without a shell, and what to do when it ends.

    `ready` names a launcher that works out further arguments by itself. Without either there is
    nothing to start, and a request says so with an empty object.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    restart: Restart = "never"
    max_restarts: int = MAX_RESTARTS
    ready: Ready = ""

    @property
    def starts(self) -> str:
        """The command that is started, or nothing."""
        return READY[self.ready] if self.ready else self.command


NO_LAUNCH = Launch()


class Template(msgspec.Struct, frozen=True):
    """A string that may hold `{{variables}}`, with its place."""

    text: str
    place: Place

    @property
    def is_open(self) -> bool:
        """Tell whether it holds a variable."""
        return _OPEN in self.text

    @property
    def fixed_start(self) -> str:
        """What it is sure to begin with, whatever its variables are."""
        return self.text.partition(_OPEN)[0]


class LauncherText(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a profile starts, as written; with nothing to start, it starts none."""

    place: Place
    command: str = ""
    ready: Ready = ""
    args: tuple[Template, ...] = ()
    env: tuple[tuple[str, Template], ...] = ()
    cwd: Template | None = None
    restart: Restart = "never"
    max_restarts: int = MAX_RESTARTS


class PlacedLaunch(msgspec.Struct, frozen=True):
    """The process of a profile once its variables have values, with its place."""

    launch: Launch
    place: Place
    variables: frozenset[str] = frozenset()
    """The variables whose values are part of it."""


Values = Annotated[
    dict[Name, Annotated[str, msgspec.Meta(max_length=MAX_VALUE)]], msgspec.Meta(max_length=100)
]


class LaunchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The entry that a request wants started; without a command it wants nothing started."""

    command: Name = ""
    values: Values = {}
    restart: Restart = "never"
    max_restarts: int = MAX_RESTARTS


NO_REQUEST = LaunchRequest()


class LaunchEntry(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A command that an operator lists, with all that its process gets from requests."""

    name: str
    command: str = ""
    ready: Ready = ""
    args: tuple[str, ...] = ()
    placeholders: dict[str, str] = {}
    """What may stand for each `{{name}}` in the arguments: a pattern for the whole value."""
    env: dict[str, str] = {}
    cwd: str | None = None

    @property
    def starts(self) -> str:
        """The command that is started."""
        return READY[self.ready] if self.ready else self.command

    @classmethod
    def plain(cls, name: str) -> Self:
        """The entry that a bare name stands for: a command without arguments.

        A ready launcher is never started bare: it works out what may be used.
        """
        return cls(name=name, ready="claude") if name == "claude" else cls(name=name, command=name)

    def to_json(self) -> str | dict[str, Any]:
        """As it can stand in the list."""
        return self.name if self == self.plain(self.name) else msgspec.to_builtins(self)

    def launch(self, request: LaunchRequest) -> Launch:
        """What a request that names this entry starts.

        Raises:
            InvalidDataError: a value is missing, not asked for, or not what the entry takes.
        """
        self._check(request.values)
        return Launch(
            command=self.command,
            ready=self.ready,
            args=tuple(_filled(arg, request.values) for arg in self.args),
            env=self.env,
            cwd=self.cwd,
            restart=request.restart,
            max_restarts=request.max_restarts,
        )

    def _check(self, values: Mapping[str, str]) -> None:
        wanted = self.placeholders.keys()
        if values.keys() != wanted:
            takes = ", ".join(sorted(wanted)) or "none"
            raise InvalidDataError(
                f"the command {self.name!r} needs a value for each of its placeholders: {takes}",
                hint="the operator's list launch_commands says which there are",
                details={"path": "$.launch.values"},
            )
        for name, pattern in self.placeholders.items():
            if not matches(pattern, values[name]):
                raise InvalidDataError(
                    f"the command {self.name!r} does not take this value for {name!r}",
                    hint=f"all of it must match {pattern}, in at most {MAX_VALUE} characters",
                    details={"path": f"$.launch.values.{name}"},
                )


def _filled(arg: str, values: Mapping[str, str]) -> str:
    """An argument with its placeholders filled.

    INVARIANT: no value turns an argument into an option.
    """
    found = BLANK.sub(lambda blank: values[blank.group(1)], arg)
    if found.startswith("-") and not arg.startswith("-"):
        raise InvalidDataError(
            "a value may not make an argument begin with '-'", details={"path": "$.launch.values"}
        )
    return found
