"""Whether an upstream tool may be trusted unseen, and whether it may be trusted at all.

Heavy to import (the scanner): only where upstream servers are listed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from remit.features.scan.scanner import scan
from remit.features.upstreams.pinning import SHARED
from remit.features.upstreams.pins import KnownServer
from remit.model.descriptor import CALL_TOOL, META_TOOL
from remit.model.upstream import UpstreamTool
from remit.policy.tool_names import server_of, tool_names, visible
from remit.policy.universe import Universe
from remit.text.confusables import look_of

MAX_DEFINITION = 262_144
"""Bytes of what a tool says about itself."""
_RESERVED = frozenset({META_TOOL, CALL_TOOL})
"""Every host may list these."""
_LONG_FORM = "mcp__"
"""How the name begins that a tool gets with the name of its server."""
_LONGEST_NAME = 128
_MOST_RULES = 3
_MOST_TEXT = 200_000


class Neighbours(msgspec.Struct, frozen=True):
    """The tools that others have, which a new one must not pass for."""

    own: frozenset[str]
    """Names of the tools of events that are served here."""
    others: Mapping[str, frozenset[str]] = {}
    """Names of the tools of other upstream servers."""


def neighbours_of(server: str, universe: Universe, known: Mapping[str, KnownServer]) -> Neighbours:
    """The tools that those of a server must not pass for: ours, and what other servers have.

    A tool that was rejected or is gone is nobody's neighbour: there is nothing to pass for.
    """
    names = tool_names(universe)
    own = {
        name
        for event, spec in universe.specs.items()
        if not server_of(event) and not spec.pushed
        for name in (spec.tool or event.replace(":", "_"), names.get(event, ""))
        if name
    }
    others = {
        one.name: frozenset(
            name for name, pin in one.tools.items() if pin.status != "rejected" and not pin.gone
        )
        for one in known.values()
        if one.name != server
    }
    return Neighbours(frozenset(own), others)


class Judge:
    """Looks at the tools of one server."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._own = neighbours.own | _RESERVED
        self._looks: dict[str, dict[str, str]] = {}
        # In pairs: a server may be called remit too.
        for owner, names in [("remit", self._own), *neighbours.others.items()]:
            for name in names:
                self._looks.setdefault(look_of(name), {}).setdefault(name, owner)

    @staticmethod
    def refusal(tool: UpstreamTool) -> str:
        """Why it can never be served as it is; empty when it can."""
        if not tool.name or len(tool.name) > _LONGEST_NAME:
            return f"its name has {len(tool.name)} characters"
        size = definition_size(tool)
        if size is None:
            return "it cannot be written as JSON"
        if size > MAX_DEFINITION:
            return f"its definition has {size:,} bytes, {MAX_DEFINITION:,} are the limit"
        return ""

    def doubts(self, tool: UpstreamTool) -> list[str]:
        """Why a person should look at it first; none when nothing is suspicious."""
        refused = self.refusal(tool)
        if refused:
            return [refused]
        unseen = visible(tool.name, _LONGEST_NAME) != tool.name
        hidden = ["its name has characters that cannot be seen"] if unseen else []
        return [*hidden, *self._lookalikes(tool.name), *_suspicions(tool)]

    def _lookalikes(self, name: str) -> Iterator[str]:
        if name in _RESERVED:
            yield SHARED
            return
        if name in self._own:  # it is held back from whoever holds both
            return
        if name.lower().replace("-", "_").startswith(_LONG_FORM):
            yield "its name is written as if it were a tool of another server"
            return
        found = self._looks.get(look_of(name), {})
        # The same name elsewhere is a plain conflict: both are shown with the name of their server.
        for other, owner in sorted(found.items()):
            if other != name:
                yield f"its name looks like {other!r} of {owner}"
                return


def _suspicions(tool: UpstreamTool) -> Iterator[str]:
    report = scan("\n".join(texts_of(tool))[:_MOST_TEXT])
    if report.suspicious:
        rules = dict.fromkeys(
            finding.rule for finding in sorted(report.findings, key=lambda one: -one.weight)
        )
        yield f"suspicious to {report.score} of 100: {', '.join(list(rules)[:_MOST_RULES])}"


def texts_of(tool: UpstreamTool) -> Iterator[str]:
    """Everything that a model would read of a tool."""
    yield tool.name
    yield tool.title
    yield tool.description
    yield from _strings((tool.input_schema, tool.output_schema, tool.annotations))


def _strings(parts: Iterable[Any]) -> Iterator[str]:
    waiting = list(parts)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [one for pair in reversed(value.items()) for one in reversed(pair)]
        elif isinstance(value, list | tuple):
            waiting += reversed(value)


def definition_size(tool: UpstreamTool) -> int | None:
    """Bytes of a definition; None when it cannot be written as JSON."""
    try:
        return len(msgspec.json.encode(tool))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
