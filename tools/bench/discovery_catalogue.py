"""Catalogues to search in: real tools, and as many more as are wanted, recombined from them.

The texts are those of `../shared/data`, which is not part of the project; without it there is
nothing to measure.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from retrieval_sets import read_set

from remit.model.descriptor import Descriptor, parameters_of
from remit.model.grant import Grant

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
_SETS = ("seal_dev", "metatool", "apibank")
_TOOLS_A_SERVER = 12


def mcp_tools() -> list[Descriptor]:
    """The tools of 31 real MCP servers."""
    found = []
    for path in sorted((DATA / "mcp_tools").glob("*.json")):
        answer = json.loads(path.read_text(encoding="utf-8"))
        server = str(answer["server"])
        found += [
            Descriptor(
                id=f"tool:{server}:{tool['name']}",
                kind="tool",
                name=tool["name"],
                display_name=tool.get("title") or "",
                description=tool.get("description") or "",
                category=server,
                server=server,
                parameters=parameters_of(tool.get("inputSchema")),
                full_schema=tool.get("inputSchema"),
                event=f"{server}:{tool['name']}",
            )
            for tool in answer["tools"]
        ]
    return found


def requests() -> list[str]:
    """Requests that people wrote for the tools of the labelled sets, in an order drawn by lot."""
    found = [query.text for name in _SETS for query in read_set(DATA / "retrieval" / name).queries]
    found = list(dict.fromkeys(found))
    random.Random(7).shuffle(found)  # noqa: S311 - no secret
    return found


def catalogue(size: int) -> list[Descriptor]:
    """So many descriptors, the same each time."""
    sources = mcp_tools()
    for name in _SETS:
        sources += read_set(DATA / "retrieval" / name).tools
    random.Random(7).shuffle(sources)  # noqa: S311 - no secret
    made = _recombined(sources)
    return [next(made) for _ in range(size)]


def _recombined(sources: list[Descriptor]) -> Iterator[Descriptor]:
    """The tools themselves, then one's name and parameters with what another one does."""
    draw = random.Random(11)  # noqa: S311 - no secret
    at = 0
    while True:
        for one in sources:
            other = draw.choice(sources) if at >= len(sources) else one
            server = f"server-{at // _TOOLS_A_SERVER}"
            name = one.name if other is one else f"{one.name}_{_last_word(other.name)}"
            about = one.description
            if other is not one:
                about = f"{_first(one.description)} {_first(other.description)}"
            yield Descriptor(
                id=f"tool:{server}:{name}-{at}",
                kind="tool",
                name=name,
                description=about,
                category=draw.choice((one, other)).category or server,
                server=server,
                tags=tuple(sorted({_last_word(one.name), _last_word(other.name)})),
                parameters=draw.choice((one, other)).parameters,
                event=f"{server}:{at}",
            )
            at += 1


def _first(text: str) -> str:
    return text.partition(". ")[0][:300]


def _last_word(name: str) -> str:
    parts = "".join(f" {sign}" if sign.isupper() else sign for sign in name.replace("_", " "))
    return (parts.split() or [name])[-1].lower()


def grant_for(descriptors: list[Descriptor]) -> Grant:
    """The grant of somebody who may use all of these."""
    events = frozenset(descriptor.event for descriptor in descriptors)
    return Grant(
        profile="bench", revision=1, bits=0, events=events, exposed=events, capabilities=()
    )
