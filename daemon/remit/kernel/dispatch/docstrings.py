"""What is known about a handler besides how to call it, as far as others are told."""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from remit.model.event import EventSpec


class ToolParts(msgspec.Struct, frozen=True):
    """What a tool list says about a handler, all but its name and whether it is pinned.

    Made once for each handler: a host asks for its list after every change, and for each turn.
    """

    told: Mapping[str, Any]
    """For the model."""
    hints: Mapping[str, Any]
    """For its host."""
    weight: int
    """Of `told` with an empty name; the hints are sent to no model."""
    thin_weight: int


class Documented(Protocol):
    """What is known about a handler besides how to call it."""

    @property
    def spec(self) -> EventSpec:
        """Its event and flags."""

    @property
    def module(self) -> str:
        """The module it stands in."""

    @property
    def description(self) -> str:
        """Its docstring without the sections about arguments."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of requests."""

    @property
    def answer_schema(self) -> dict[str, Any]:
        """The JSON Schema of answers; empty when nobody said."""

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of what a tool of this event gives to programs; empty: unknown."""

    @property
    def tool_parts(self) -> ToolParts:
        """What a tool list says about it."""
