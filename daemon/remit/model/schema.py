"""What a value must be: a bounded text, a pattern that matches all of it, or a JSON Schema.

Each text of a request has a length, and its pattern is about the whole of it: an event whose field
is a plain `str` takes a text as long as a message, and whatever answers with it, stores it or
writes it down would take it too. Operators write patterns and strangers the values, so matching
takes linear time. Of a schema nothing is fetched: it refers to its own parts only. The schema of
somebody who is no operator may not refer at all, because references that double at each step make a
small schema take forever.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

import msgspec

NAME_LIMIT = 200
Name = Annotated[str, msgspec.Meta(max_length=NAME_LIMIT)]
"""What somebody or something may be called: an agent, a profile, an event, a pattern."""
KEY_LIMIT = 1024
PAGE_LIMIT = 100
PAGE_MAX = 1000
BODY_BYTES = 512 * 1024
"""A message may have 1 MiB; one that cannot be sent tells nothing."""
_START, _END = r"\A(?:", r")\Z"

MAX_VALUE = 4096
"""Characters of a value that must match a pattern."""
MAX_BYTES = 65_536
MAX_DEPTH = 32
_MOST = 20
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

Path = tuple[str | int, ...]


def whole(pattern: str, *, most: int) -> msgspec.Meta:
    r"""Text that is like `pattern` from its first character to its last.

    A pattern of msgspec is searched for, and `$` also stands in front of a newline at the end: `\Z`
    does not.
    """
    return msgspec.Meta(pattern=rf"{_START}{pattern}{_END}", max_length=most)


def published(schema: Any) -> Any:
    r"""A JSON Schema as others may read it: they do not know `\Z`, and their `$` is the end."""
    if isinstance(schema, list):
        return [published(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _pattern(one) if key == "pattern" else published(one) for key, one in schema.items()
    }


def published_text(message: str) -> str:
    """A complaint of msgspec about a pattern, with the pattern as a schema says it."""
    start, end = (one.replace("\\", "\\\\") for one in (_START, _END))
    return message.replace(start, "^(").replace(end, ")$")


def _pattern(found: Any) -> Any:
    if isinstance(found, str) and found.startswith(_START) and found.endswith(_END):
        return f"^({found.removeprefix(_START).removesuffix(_END)})$"
    return published(found)


Key = Annotated[str, msgspec.Meta(max_length=KEY_LIMIT)]
"""What a list shows to ask for one entry by, or to go on from."""
NewName = Annotated[str, whole(r"[a-z][a-z0-9_-]{0,63}", most=64)]
"""What an agent or a client is named."""
FileText = Annotated[str, msgspec.Meta(max_length=1 << 20)]
"""The text of a definition file."""
Variables = Annotated[
    dict[Name, Annotated[str, msgspec.Meta(max_length=8_192)] | int | float | bool],
    msgspec.Meta(max_length=256),
]
"""Values for the variables of a profile."""


def page(
    names: Sequence[str], describe: Callable[[str], Any], *, limit: int, after: str
) -> dict[str, Any]:
    """One page of sorted names, each described; `next` is the cursor to go on with."""
    remaining = [name for name in names if name > after]
    shown = remaining[:limit]
    more = len(remaining) > limit
    return {
        "items": [describe(name) for name in shown],
        "total": len(names),
        "next": shown[-1] if more else None,
    }


def bounded(body: dict[str, Any], *largest: str) -> dict[str, Any]:
    """The body, without its largest parts, one after the other, until it fits into a message."""
    for part in largest:
        if len(msgspec.json.encode(body)) <= BODY_BYTES:
            return body
        body = body | {part: type(body[part])(), "truncated": True}
    return body


def pattern_complaint(pattern: str) -> str:
    """What is wrong with a pattern; nothing when it can be used."""
    import re2  # noqa: PLC0415 - a native library, and few definitions have a pattern

    try:
        _compiled(pattern)
    except (re2.error, UnicodeEncodeError) as error:
        return f"{pattern!r} is no pattern: {error}"
    return ""


def matches(pattern: str, value: str) -> bool:
    """Tell whether all of `value` matches.

    INVARIANT: never a part of it, and not one line of it: `$` does not match before a line break.
    """
    if len(value) > MAX_VALUE or "\0" in value:
        return False
    try:
        return _compiled(pattern).fullmatch(value) is not None
    except UnicodeEncodeError:
        return False


@lru_cache(256)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - as above

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)  # by itself: what is put around could mend it


class Mistake(msgspec.Struct, frozen=True):
    """What is wrong, and where in the value; the empty path is the whole of it."""

    path: Path
    message: str


def schema_mistakes(schema: Mapping[str, Any], *, refer: bool = True) -> tuple[Mistake, ...]:
    """What keeps a schema from being used; empty when it can be.

    Args:
        schema: the schema.
        refer: whether it may refer to its own parts.
    """
    found = _outside_bounds(schema)
    if found or (found := () if refer else tuple(_references(schema))):
        return found
    if _is_plain(schema):
        return ()
    # 30 ms and 14 MB: few catalogues need it
    import jsonschema_rs  # noqa: PLC0415

    try:
        _validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        path = tuple(getattr(error, "instance_path", ()))
        return (Mistake(path, _first_line(error)),)
    return ()


def config_mistakes(schema: Mapping[str, Any] | None, config: Any) -> tuple[Mistake, ...]:
    """Where a configuration does not fit; without a schema everything does."""
    if schema is None:
        return ()
    found = _outside_bounds(config)
    if found:
        return found
    if config == {} and _is_plain(schema) and schema.get("type") in (None, "object"):
        # Most schemas are asked this, and need no validator: 30 ms less for each command.
        missing = sorted(schema.get("required", ()))
        return tuple(Mistake((), f'"{name}" is a required property') for name in missing)
    mistakes = []
    for error in _validator(schema).iter_errors(config):
        mistakes.append(Mistake(tuple(error.instance_path), error.message))
        if len(mistakes) == _MOST:
            break
    return tuple(sorted(mistakes, key=lambda one: (shown(one.path), one.message)))


def shown(path: Path, start: str = "$") -> str:
    """A path as errors show it: `$.limits[2].name`."""
    return start + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _validator(schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - see above

    return jsonschema_rs.Draft202012Validator(
        dict(schema), retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
    )


_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: object) -> bool:
    names = value if isinstance(value, list | tuple) else [None]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _is_plain(schema: object) -> bool:
    """Tell whether a schema is made of the commonest keys alone: then one look says it is one."""
    return isinstance(schema, Mapping) and all(
        key in _PLAIN and _PLAIN[key](value) for key, value in schema.items()
    )


_PLAIN: Mapping[str, Callable[[Any], bool]] = {
    "type": lambda value: isinstance(value, str) and value in _TYPES,
    "title": lambda value: isinstance(value, str),
    "description": lambda value: isinstance(value, str),
    "required": _are_names,
    "additionalProperties": lambda value: isinstance(value, bool),
    "uniqueItems": lambda value: isinstance(value, bool),
    "minItems": _is_size,
    "maxItems": _is_size,
    "minLength": _is_size,
    "maxLength": _is_size,
    "items": _is_plain,
    "properties": lambda value: isinstance(value, Mapping) and all(map(_is_plain, value.values())),
}


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} lies outside: a schema refers to its own parts only")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _outside_bounds(value: Any) -> tuple[Mistake, ...]:
    if any(len(path) > MAX_DEPTH for path, _ in _walk(value)):
        return (Mistake((), f"it is deeper than {MAX_DEPTH}"),)
    size = len(msgspec.json.encode(value))
    return (Mistake((), f"it has more than {MAX_BYTES:,} bytes"),) if size > MAX_BYTES else ()


def _references(schema: Any) -> Iterator[Mistake]:
    for path, value in _walk(schema):
        for name in _REFERENCES:
            if isinstance(value, Mapping) and name in value:
                yield Mistake((*path, name), f"a schema made at run time has no {name!r}")


def _walk(value: Any) -> Iterator[tuple[Path, Any]]:
    """Every part of a value with its path, without recursion and no deeper than is allowed."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, present = waiting.pop()
        yield path, present
        if len(path) > MAX_DEPTH:
            continue
        if isinstance(present, Mapping):
            waiting += [((*path, str(key)), inside) for key, inside in present.items()]
        elif isinstance(present, (list, tuple)):
            waiting += [((*path, at), inside) for at, inside in enumerate(present)]
