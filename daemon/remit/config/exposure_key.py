"""The keys `exposure` and `pinned` of a composition: which of its tools are listed at once."""

from typing import Any

import msgspec

from remit.config.kinds import BAD, ChoiceKind, ListKind, Report, TextKind
from remit.config.nodes import Node
from remit.model.composition import Text
from remit.model.exposure import EXPOSURES, PlacedExposure

_MODES = ChoiceKind(EXPOSURES)


class ExposureKind(msgspec.Struct, frozen=True):
    """One of the words, with its place: what does not fit it is told there."""

    def read(self, node: Node, report: Report) -> Any:
        """Read the word."""
        mode: Any = _MODES.read(node, report)
        return BAD if mode is BAD else PlacedExposure(mode, node.place)

    def schema(self) -> dict[str, Any]:
        """An enumeration."""
        return _MODES.schema()


EXPOSURE = ExposureKind()
PINNED = ListKind(TextKind(Text, what="an event or a pattern"), single=True)
