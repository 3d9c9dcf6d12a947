"""Lists of tools and host files of MCP, as subjects of a scan.

A tool is scanned string by string: names of parameters, values, examples and titles reach a model
as surely as descriptions do.
"""

from collections.abc import Iterator
from pathlib import PurePath

from remit.config.strict.json import JsonString, Path
from remit.features.scan.subjects import SourceFile, Subject, Text, role_of

_FORM = (
    "type object string number integer boolean array null properties required items enum default "
    "description title anyOf oneOf allOf not format additionalProperties $schema $ref $defs const "
    "examples minimum maximum minLength maxLength minItems maxItems pattern name inputSchema "
    "outputSchema input_schema output_schema annotations readOnlyHint destructiveHint "
    "idempotentHint openWorldHint propertyNames uniqueItems definitions"
)
_VOCABULARY = frozenset(_FORM.split())
"""Words of the form itself: they say nothing, and stand there thousands of times."""


def tools_in(source: SourceFile, strings: list[JsonString]) -> Iterator[Subject]:
    """Every tool of an answer to tools/list, or of what is pinned about a server."""
    groups: dict[Path, list[JsonString]] = {}
    for one in strings:
        prefix = _tool_prefix(one)
        if prefix is not None:
            groups.setdefault(prefix, []).append(one)
    server = _value(strings, "server") or _value(strings, "name") or PurePath(source.file).stem
    rejected = {one.path[:-1] for one in strings if _says_rejected(one)}
    for prefix, parts in groups.items():
        if prefix[:-1] in rejected and prefix[-1] == "pending":
            continue  # nobody will be shown it
        name = next((p.value for p in parts if p.path == (*prefix, "name") and not p.is_key), "")
        if name or "tools" in prefix:  # a tool without a name is read as well
            yield Subject(
                f"tool:{server}/{name or prefix[-1]}",
                "tool",
                tuple(_texts(source, parts, (*prefix, "name"))),
                name=name,
                server=server,
                note="(waits for a review)" if prefix[-1] == "pending" else "",
            )


def _says_rejected(one: JsonString) -> bool:
    return not one.is_key and one.path[2:] == ("status",) and one.value == "rejected"


def _tool_prefix(one: JsonString) -> Path | None:
    """The path of the tool that a string belongs to: of an answer to tools/list, or of pins."""
    path = one.path
    if len(path) > 1 and isinstance(path[0], int):
        return path[:1]
    if path[:1] == ("result",):
        inner = _tool_prefix_in(path[1:])
        return None if inner is None else ("result", *inner)
    return _tool_prefix_in(path)


def _tool_prefix_in(path: Path) -> Path | None:
    if path[:1] != ("tools",) or len(path) < 3:  # noqa: PLR2004 - a tool and something in it
        return None
    if isinstance(path[1], int):
        return path[:2]
    return path[:3] if path[2] in ("tool", "pending") and len(path) > 3 else None  # noqa: PLR2004


def _value(strings: list[JsonString], key: str) -> str:
    return next((one.value for one in strings if one.path == (key,) and not one.is_key), "")


def _texts(source: SourceFile, strings: list[JsonString], first: Path) -> Iterator[Text]:
    """The strings of a tool: its name, what is written for people, then names and values."""
    name = [one for one in strings if one.path == first and not one.is_key]
    rest = [one for one in strings if one not in name]
    texts = [_text(source, one) for one in (*name, *rest)]
    yield from (one for one in texts[: len(name)])
    yield from (one for one in texts[len(name) :] if one.role == "prose")
    told: set[str] = set()
    for text in texts[len(name) :]:
        if text.role == "name" and text.value not in told and text.value not in _VOCABULARY:
            told.add(text.value)
            yield text


def _text(source: SourceFile, one: JsonString) -> Text:
    value = one.value
    return Text(value, source, one.start, role_of(value), one.raw)


_SERVER_KEYS = ("mcpServers", "servers")
_COMMAND = frozenset({"command", "args", "url", "description"})
"""What is read of a host's file: values of `env` and `headers` may be secrets."""


def servers_in(source: SourceFile, strings: list[JsonString]) -> Iterator[Subject]:
    """Every server of a host's file: how it is started, or where it is."""
    groups: dict[str, list[Text]] = {}
    for one in strings:
        inner = _inside_servers(one.path)
        if len(inner) == 1 and one.is_key:
            groups.setdefault(one.value, []).append(_text(source, one))
        elif len(inner) > 1 and inner[1] in _COMMAND and not one.is_key:
            groups.setdefault(str(inner[0]), []).append(_text(source, one))
    for name, texts in groups.items():
        yield Subject(f"server:{name}", "server", tuple(texts), server=name)


def _inside_servers(path: Path) -> Path:
    """The path from the name of a server on; editors put the whole under `mcp`."""
    at = 1 if path[:1] == ("mcp",) else 0
    return path[at + 1 :] if path[at : at + 1] and path[at] in _SERVER_KEYS else ()
