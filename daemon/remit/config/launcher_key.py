"""The key `launcher` of a composition: the name of a ready launcher, or a mapping."""

from typing import Any

import msgspec

from remit.config.kinds import (
    BAD,
    ChoiceKind,
    Field,
    ListKind,
    RecordKind,
    Report,
    TextKind,
    WholeKind,
)
from remit.config.nodes import Mapping, Node, Scalar
from remit.model.composition import LauncherText, Text
from remit.model.launch import MAX_RESTARTS, READY, RESTARTS, SETTABLE

NO_LAUNCHER = "none"
"""Starts nothing, whatever the profiles start that this one builds on."""


class EnvironmentKind(msgspec.Struct, frozen=True):
    """`{NAME: text}`; who the process is, is not for a profile to say."""

    name: TextKind = TextKind(pattern=SETTABLE, what="a variable that a profile may set")
    value: TextKind = TextKind(Text)

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
        "args": Field(ListKind(TextKind(Text)), "Arguments; a ready launcher adds its own"),
        "env": Field(EnvironmentKind(), "Variables of the process"),
        "cwd": Field(TextKind(Text), "The folder in which it runs"),
        "restart": Field(ChoiceKind(RESTARTS), "What to do when it ends; never when absent"),
        "max_restarts": Field(WholeKind(0, MAX_RESTARTS), "How often it is started again"),
    },
    lambda values, _node: values,
    "a launcher",
)
LAUNCHER = LauncherKind()
