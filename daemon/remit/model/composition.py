"""A composition as an operator wrote it: what a profile builds on and says, not yet resolved."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from remit.errors import Place
from remit.model.launch import LauncherText, Template
from remit.model.limits import NO_LIMITS, Limits, PlacedEffect, PlacedExposure
from remit.model.names import Ref
from remit.model.schema import Path, matches

VariableType = Literal["string", "integer", "number", "boolean"]
VARIABLE_TYPES: tuple[VariableType, ...] = ("string", "integer", "number", "boolean")
Scalar = str | int | float | bool
_TYPES: dict[VariableType, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class Variable(msgspec.Struct, frozen=True):
    """A typed blank that a profile leaves open."""

    name: str
    place: Place
    default: Scalar
    type: VariableType = "string"
    allowed_values: tuple[Scalar, ...] = ()
    description: str = ""
    pattern: str = ""
    """What all of a text must match; empty: any text."""

    @property
    def is_bounded(self) -> bool:
        """Tell whether an operator said which values it may have."""
        return bool(self.type != "string" or self.allowed_values or self.pattern)

    def complaint(self, value: Scalar) -> str:
        """What is wrong with a value for this variable; nothing when it fits."""
        fits = isinstance(value, _TYPES[self.type])
        if self.type != "boolean" and isinstance(value, bool):
            fits = False
        if not fits:
            return f"{value!r} is not a value of type {self.type} for {self.name!r}"
        allowed = self.allowed_values
        if allowed and not any(same_value(value, one) for one in allowed):
            choices = ", ".join(map(str, allowed))
            return f"{value!r} is not allowed for {self.name!r}; allowed: {choices}"
        if self.pattern and not matches(self.pattern, str(value)):
            wanted = f"all of it must match {self.pattern}"
            return f"{value!r} is not allowed for {self.name!r}; {wanted}"
        return ""


def same_value(one: Scalar, other: Scalar) -> bool:
    """Equality that keeps true apart from 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


class Condition(msgspec.Struct, frozen=True):
    """One `variable: value` pair of a `when`; it holds when the variable has exactly that value."""

    variable: str
    value: Scalar
    place: Place


class Flag(msgspec.Struct, frozen=True):
    """A capability switched on or off, with the configuration it is given."""

    capability: str
    on: bool
    place: Place
    config: dict[str, Any] | None = None
    places: Mapping[Path, Place] = {}
    """Where each part of the configuration stands."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one component; the short form is a part without a condition."""

    when: tuple[Condition, ...] = ()
    flags: tuple[Flag, ...] = ()
    allowed: tuple[Template, ...] = ()
    """`allowed_tools` and `additional_tools`: both add."""
    disallowed: tuple[Template, ...] = ()
    approval: tuple[Template, ...] = ()
    """`approval_required`: events that wait for an operator's yes at each call."""
    limits: Limits = NO_LIMITS
    max_effect: PlacedEffect | None = None
    """Nothing that does more is left, whoever gives it."""
    prompt: Template | None = None
    launcher: LauncherText | None = None
    exposure: PlacedExposure | None = None
    pinned: tuple[Template, ...] = ()


class Mixin(msgspec.Struct, frozen=True):
    """A composition that is merged in, perhaps under a condition."""

    ref: Ref
    when: tuple[Condition, ...] = ()


class Composition(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the compositions folder."""

    name: str
    place: Place
    description: str = ""
    version: str = ""
    author: str = ""
    metadata: dict[str, Any] = {}
    """Remarks of whoever wrote it; nothing here looks into them."""
    operator: bool = False
    """An operator profile may use the bare `*` in its allow lists."""
    trust: bool = False
    """What use teaches its holders counts for everybody at once; only its own file says so."""
    extends: tuple[Ref, ...] = ()
    mixins: tuple[Mixin, ...] = ()
    variables: tuple[Variable, ...] = ()
    parts: tuple[Part, ...] = ()
