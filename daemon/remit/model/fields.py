"""The pattern that a value of a request must match as a whole.

Operators write the patterns and strangers the values, so matching takes linear time.
"""

from functools import lru_cache
from typing import Annotated, Any

import msgspec

from remit.model.names import NAME_LIMIT

MAX_VALUE = 4096
"""Characters of a value that is held to a pattern."""


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


# Types of texts in requests: each has a length, and a pattern is about the whole of it.
#
# An event whose field is a plain `str` takes a text as long as a message. A name never is that
# long, and whatever answers with it, keeps it or writes it down would be.


KEY_LIMIT = 1024
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


Name = Annotated[str, msgspec.Meta(max_length=NAME_LIMIT)]
"""What somebody or something may be called: an agent, a profile, an event, a pattern."""
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
