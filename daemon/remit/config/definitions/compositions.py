"""A composition file: its keys, its three forms, and how it becomes a composition.

The components form, the short form and explicit lists mean the same thing: each becomes a list of
parts, and the resolver knows only parts.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from remit.config.definitions.capabilities import CAPABILITY_REF, LIMITS, REMARK_FIELDS
from remit.config.definitions.launchers import LAUNCHER
from remit.config.strict.kinds import (
    BAD,
    ChoiceKind,
    Field,
    FlagKind,
    JsonKind,
    Kind,
    ListKind,
    MapKind,
    RecordKind,
    Report,
    ScalarKind,
    TextKind,
    places_of,
)
from remit.config.strict.yaml import Mapping, Node, Scalar, Sequence
from remit.errors import Place
from remit.model.composition import (
    VARIABLE_TYPES,
    Composition,
    Condition,
    Flag,
    Mixin,
    Part,
    Variable,
)
from remit.model.launch import Template
from remit.model.limits import EFFECTS, EXPOSURES, NO_LIMITS, PlacedEffect, PlacedExposure
from remit.model.names import Ref
from remit.model.schema import pattern_complaint

PROFILE_NAME = r"[a-z][a-z0-9_-]{0,63}"
VARIABLE_NAME = r"[a-z][a-z0-9_]{0,63}"


class FlagsKind(msgspec.Struct, frozen=True):
    """Capabilities, as `{name: true}` or as a list of names and `{ref, config}`."""

    def read(self, node: Node, report: Report) -> Any:
        """Read either form into flags."""
        if isinstance(node, Mapping):
            flags = [self._flag(key, value, report) for key, value in node.pairs]
        elif isinstance(node, Sequence):
            flags = [self._entry(item, report) for item in node.items]
        else:
            hint = "write {state_read: true} or [state_read]"
            report.add(node.place, "wrong_type", "expected capabilities", hint)
            return BAD
        return tuple(flag for flag in flags if flag is not BAD)

    def _flag(self, key: Scalar, value: Node, report: Report) -> Any:
        ref = CAPABILITY_REF.read(key, report)
        on = FlagKind().read(value, report)
        return BAD if BAD in (ref, on) else Flag(key.text, on, key.place)

    def _entry(self, item: Node, report: Report) -> Any:
        if isinstance(item, Mapping):
            return _CONFIGURED.read(item, report)
        ref = CAPABILITY_REF.read(item, report)
        return BAD if ref is BAD else Flag(ref.name, True, ref.place)  # noqa: FBT003

    def schema(self) -> dict[str, Any]:
        """An object of booleans, or a list."""
        name = CAPABILITY_REF.schema()
        return {
            "anyOf": [
                {
                    "type": "object",
                    "propertyNames": name,
                    "additionalProperties": {"type": "boolean"},
                },
                {"type": "array", "items": {"anyOf": [name, _CONFIGURED.schema()]}},
            ]
        }


def _configured(values: dict[str, Any], node: Node) -> Any:
    ref = values.get("ref")
    if ref is None:
        return BAD
    config = values.get("config")
    places = [places_of(value) for key, value in _pairs(node) if key.text == "config"]
    return Flag(ref.name, True, ref.place, config, places[0] if config else {})  # noqa: FBT003


def _pairs(node: Node) -> list[tuple[Scalar, Node]]:
    return node.pairs if isinstance(node, Mapping) else []


_CONFIGURED = RecordKind(
    {
        "ref": Field(CAPABILITY_REF, "The capability", required=True),
        "config": Field(JsonKind(), "Its configuration"),
    },
    _configured,
    "a capability entry",
)


class WhenKind(msgspec.Struct, frozen=True):
    """`{variable: value}`: every pair must hold. Nothing is ever evaluated."""

    def read(self, node: Node, report: Report) -> Any:
        """Read the pairs."""
        if not isinstance(node, Mapping):
            hint = "write {variable: value}; expressions are not understood"
            report.add(node.place, "wrong_type", "expected a mapping", hint)
            return BAD
        conditions = []
        for key, value in node.pairs:
            wanted = ScalarKind().read(value, report)
            if wanted is not BAD:
                conditions.append(Condition(key.text, wanted, key.place))
        return tuple(conditions)

    def schema(self) -> dict[str, Any]:
        """An object of scalars."""
        return {"type": "object", "additionalProperties": ScalarKind().schema()}


_TOOL_LIST = ListKind(TextKind(Template, what="an event, a pattern or a model tool"), single=True)
_EVENT_LIST = ListKind(TextKind(Template, what="an event or a pattern"), single=True)
_TOOL_FIELDS: dict[str, Field] = {
    "allowed_tools": Field(_TOOL_LIST, "Explicit list of events, patterns and model tools"),
    "additional_tools": Field(_TOOL_LIST, "Added to what the capabilities give"),
    "disallowed_tools": Field(_TOOL_LIST, "Taken away last; a denial beats any grant"),
}


def _tools(values: dict[str, Any], _node: Node | None = None) -> Part:
    return Part(
        allowed=values.get("allowed_tools", ()) + values.get("additional_tools", ()),
        disallowed=values.get("disallowed_tools", ()),
    )


_PROMPT = TextKind(Template)
_PINNED = ListKind(TextKind(Template, what="an event or a pattern"), single=True)
_EXPOSURE = ChoiceKind(EXPOSURES, PlacedExposure)
_MAX_EFFECT = ChoiceKind(EFFECTS, PlacedEffect)
_FLAGS = FlagsKind()
_TOOLS = RecordKind(_TOOL_FIELDS, _tools, "a tool list")

COMPONENTS: dict[str, tuple[Kind, Callable[[Any], Part]]] = {
    "capabilities": (_FLAGS, lambda flags: Part(flags=flags)),
    "tool_overrides": (_TOOLS, lambda part: part),
    "ksi_tools": (_TOOLS, lambda part: part),
    "prompt": (_PROMPT, lambda prompt: Part(prompt=prompt)),
    "limits": (LIMITS, lambda limits: Part(limits=limits)),
    "launcher": (LAUNCHER, lambda launcher: Part(launcher=launcher)),
    "max_effect": (_MAX_EFFECT, lambda ceiling: Part(max_effect=ceiling)),
    "exposure": (_EXPOSURE, lambda exposure: Part(exposure=exposure)),
    "pinned": (_PINNED, lambda pinned: Part(pinned=pinned)),
}
"""What each component holds, and how its content becomes a part."""

OpenSource = Callable[[str, Scalar, Report], Node | None]
"""Fetch the content of `source:` as a node; None after a problem was reported."""


class ComponentKind(msgspec.Struct, frozen=True):
    """`{name, inline | source, when}`."""

    open_source: OpenSource

    def read(self, node: Node, report: Report) -> Any:
        """Read the envelope, then the content by the component's name."""
        if not isinstance(node, Mapping):
            report.add(node.place, "wrong_type", "a component is a mapping with 'name'")
            return BAD
        contents = {key.text: value for key, value in node.pairs}
        envelope = RecordKind(_ENVELOPE, lambda values, _node: values, "a component")
        values = envelope.read(node, report)
        content = self._content(node, contents, report)
        if "name" not in values or content is None:
            return BAD
        kind, to_part = COMPONENTS[values["name"]]
        inside = kind.read(content, report)
        if inside is BAD:
            return BAD
        return msgspec.structs.replace(to_part(inside), when=values.get("when", ()))

    def _content(self, node: Mapping, contents: dict[str, Node], report: Report) -> Node | None:
        if ("inline" in contents) == ("source" in contents):
            message = "a component has either 'inline' or 'source'"
            report.add(node.place, "component_content", message)
            return None
        if "inline" in contents:
            return contents["inline"]
        source = contents["source"]
        name = contents.get("name")
        if not isinstance(source, Scalar) or not isinstance(name, Scalar):
            return None
        if not isinstance(source.value, str):
            return None
        return self.open_source(name.text, source, report)

    def schema(self) -> dict[str, Any]:
        """One alternative for each component."""
        when = {"when": WhenKind().schema(), "source": {"type": "string"}}
        return {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"name": {"const": name}, "inline": kind.schema(), **when},
                    "required": ["name"],
                    "additionalProperties": False,
                }
                for name, (kind, _) in COMPONENTS.items()
            ]
        }


class _AnyKind(msgspec.Struct, frozen=True):
    """Content that is read later, when the component's name is known."""

    def read(self, node: Node, _report: Report) -> Any:
        return node

    def schema(self) -> dict[str, Any]:
        return {}


_ENVELOPE: dict[str, Field] = {
    "name": Field(ChoiceKind(tuple(COMPONENTS)), "Which component", required=True),
    "inline": Field(_AnyKind(), "Its content"),
    "source": Field(TextKind(), "A file inside the compositions folder with its content"),
    "when": Field(WhenKind(), "Only when these variables have these values"),
}


class MixinKind(msgspec.Struct, frozen=True):
    """A profile name, or `{name, when}`."""

    def read(self, node: Node, report: Report) -> Any:
        """Read either form."""
        if isinstance(node, Mapping):
            return _CONDITIONAL_MIXIN.read(node, report)
        ref = PROFILE_REF.read(node, report)
        return BAD if ref is BAD else Mixin(ref)

    def schema(self) -> dict[str, Any]:
        """A string or an object."""
        return {"anyOf": [PROFILE_REF.schema(), _CONDITIONAL_MIXIN.schema()]}


PROFILE_REF = TextKind(Ref, pattern=PROFILE_NAME, what="a profile name")
_CONDITIONAL_MIXIN = RecordKind(
    {
        "name": Field(PROFILE_REF, "The composition", required=True),
        "when": Field(WhenKind(), "Only when these variables have these values"),
    },
    lambda values, _node: (
        Mixin(values["name"], values.get("when", ())) if "name" in values else BAD
    ),
    "a mixin",
)


class ValuePatternKind(TextKind, frozen=True):
    """A pattern that values are held to; one that cannot be read would let nothing through."""

    def read(self, node: Node, report: Report) -> Any:
        """Read text, and see that it is a pattern."""
        pattern = super().read(node, report)
        complaint = "" if pattern is BAD else pattern_complaint(pattern)
        if complaint:
            report.add(node.place, "invalid_name", complaint, "write it as RE2 understands it")
            return BAD
        return pattern


_VARIABLES = MapKind(
    TextKind(pattern=VARIABLE_NAME, what="a variable name"),
    RecordKind(
        {
            "type": Field(ChoiceKind(VARIABLE_TYPES), "Its type; string when absent"),
            "default": Field(ScalarKind(), "Its value when nobody gives one", required=True),
            "allowed_values": Field(ListKind(ScalarKind()), "The only values it may have"),
            "pattern": Field(ValuePatternKind(), "A pattern for all of its text"),
            "description": Field(TextKind(), "What it is for"),
        },
        lambda values, _node: values,
        "a variable",
    ),
    lambda name, place, values: Variable(name, place, **({"default": ""} | values)),
)


def composition_kind(open_source: OpenSource) -> RecordKind:
    """The description of a whole file."""
    fields: dict[str, Field] = {
        "name": Field(PROFILE_REF, "Name of the profile", required=True),
        "description": Field(TextKind(), "What this profile is for"),
        **REMARK_FIELDS,
        "operator": Field(FlagKind(), "An operator profile may allow the bare '*'"),
        "trust": Field(FlagKind(), "What its holders teach discovery counts for everybody at once"),
        "extends": Field(ListKind(PROFILE_REF, single=True), "Profiles that this one builds on"),
        "mixins": Field(
            ListKind(MixinKind(), single=True), "Merged after extends, before own keys"
        ),
        "variables": Field(_VARIABLES, "Typed blanks, used as {{name}}"),
        "components": Field(ListKind(ComponentKind(open_source)), "The components form"),
        "capabilities": Field(_FLAGS, "Capabilities switched on or off"),
        **_TOOL_FIELDS,
        "approval_required": Field(_EVENT_LIST, "Events whose every call waits for an operator"),
        "limits": Field(LIMITS, "Limits of this profile"),
        "prompt": Field(_PROMPT, "The agent's own system prompt"),
        "launcher": Field(LAUNCHER, "The process to start for an agent that is spawned"),
        "max_effect": Field(
            _MAX_EFFECT, "Events that do more are taken away last, like denied ones"
        ),
        "exposure": Field(_EXPOSURE, "Which tools its host is shown at once; all when absent"),
        "pinned": Field(_PINNED, "Events that its host is shown whatever the exposure"),
    }
    return RecordKind(fields, _composition, "a composition")


def _composition(values: dict[str, Any], node: Node) -> Composition:
    ref = values.get("name") or Ref("", node.place)
    own = msgspec.structs.replace(
        _tools(values),
        flags=values.get("capabilities", ()),
        approval=values.get("approval_required", ()),
        limits=values.get("limits", NO_LIMITS),
        max_effect=values.get("max_effect"),
        prompt=values.get("prompt"),
        launcher=values.get("launcher"),
        exposure=values.get("exposure"),
        pinned=values.get("pinned", ()),
    )
    return Composition(
        name=ref.name,
        place=ref.place,
        description=values.get("description", ""),
        version=values.get("version", ""),
        author=values.get("author", ""),
        metadata=values.get("metadata", {}),
        operator=values.get("operator", False),
        trust=values.get("trust", False),
        extends=values.get("extends", ()),
        mixins=values.get("mixins", ()),
        variables=values.get("variables", ()),
        parts=(*values.get("components", ()), own),
    )


def read_composition_file(
    node: Node | None, file: str, report: Report, open_source: OpenSource
) -> Composition | None:
    """Read one composition; None when not even its name could be read."""
    if node is None:
        report.add(Place(file), "empty_file", "the file is empty", "start with 'name:'")
        return None
    found = composition_kind(open_source).read(node, report)
    return found if isinstance(found, Composition) and found.name else None
