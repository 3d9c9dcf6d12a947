"""The pattern that a value of a request must match as a whole.

Operators write the patterns and strangers the values, so matching takes linear time.
"""

from functools import lru_cache
from typing import Any

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
