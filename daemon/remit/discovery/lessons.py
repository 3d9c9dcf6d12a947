"""What use has taught, in the form that an index is made from."""

from collections.abc import Mapping, Sequence

import msgspec


class Lessons(msgspec.Struct, frozen=True):
    """Requests that descriptors served, what was used together, and what failed."""

    examples: Mapping[str, Sequence[str]] = {}
    """By descriptor id."""
    together: Mapping[tuple[str, str], float] = {}
    """How often two ids were used for one request, decayed; each pair once, in order."""
    penalties: Mapping[str, float] = {}
    """By descriptor id, from 0 (none) to 1: how often it failed those who chose it."""


NO_LESSONS = Lessons()
