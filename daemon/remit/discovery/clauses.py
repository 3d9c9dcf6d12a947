"""Cutting a request with many steps into its steps, so that each can find its own tool."""

import re

from remit.model.words import words

MAX_CLAUSES = 6
MAX_REQUEST = 4_000
"""Characters of a request that are looked at; what follows is mostly pasted material."""

_BORDER = re.compile(
    r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+"  # noqa: RUF001 - the stops of other scripts
    r"|,?\s+(?:and then|then|and also|also|and|und dann|y luego|puis)\s+",
    re.IGNORECASE,
)
_OPENING = re.compile(r"(?:and |then |also |finally |first |next |after that |,)+", re.IGNORECASE)
_MEANT = 2
"""A clause of fewer words than these says too little to search with."""


def shortened(request: str) -> str:
    """The request as far as it is looked at, on one level of blanks."""
    return " ".join(request[: MAX_REQUEST * 2].split())[:MAX_REQUEST]


def clauses(request: str) -> list[str]:
    """The steps of a request; nothing when it has only one."""
    parts = [_bare(part) for part in _BORDER.split(request[:MAX_REQUEST]) if part]
    parts = [part for part in parts if len(words(part)) >= _MEANT]
    return parts[:MAX_CLAUSES] if len(parts) > 1 else []


def _bare(part: str) -> str:
    part = part.strip()
    opening = _OPENING.match(part)
    return part[opening.end() :].strip() if opening else part
