"""Numbers that are none: JSON has no NaN and no infinity, but some who read it do.

Written again they become `null`, so that what was checked, pinned or shown would be something else.
"""

import math
from typing import Any


def has_no_number(value: Any, encoded: bytes) -> bool:
    """Tell whether a JSON value has a NaN or an infinity in it.

    Args:
        value: what may have one.
        encoded: the same as `msgspec.json` writes it, where a look is quick.
    """
    if b"null" not in encoded:
        return False
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return True
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False
