"""What fields of requests hold, and the pages of their answers.

Each text of a request has a length, and its pattern is about the whole of it: an event whose field
is a plain `str` takes a text as long as a message, and whatever answers with it, stores it or
writes it down would take it too.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from remit.model.names import Name

KEY_LIMIT = 1024
PAGE_LIMIT = 100
PAGE_MAX = 1000
BODY_BYTES = 512 * 1024
"""A message may have 1 MiB; one that cannot be sent tells nothing."""
_START, _END = r"\A(?:", r")\Z"


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
