"""The text that goes into a prompt: the tiers between a fence, inside the total budget."""

import msgspec

from remit.discovery.counting import TokenCounter
from remit.discovery.cutting import fitted
from remit.discovery.tiers import Tiered
from remit.model.fence import fenced

_CUT = "\n[cut to fit]"
_TRIES = 6


class Rendered(msgspec.Struct, frozen=True):
    """Text for a prompt, and what it costs; empty when the budget is too small for anything."""

    text: str
    tokens: int


def render(tiered: Tiered, counter: TokenCounter) -> Rendered:
    """The tiers as one text: first the detail gives way to the fence, then the summary."""
    limit = tiered.limits.total
    parts = [part for part in (tiered.map, tiered.summary, tiered.detail) if part]
    while parts:
        text = fenced("\n\n".join(parts))
        over = counter.count(text) - limit
        if over <= 0:
            return Rendered(text, counter.count(text))
        parts = _less(parts, over, counter) if len(parts) > 1 else []
    return Rendered("", 0)


def _less(parts: list[str], over: int, counter: TokenCounter) -> list[str]:
    """The parts with less of the last one, or without it."""
    *kept, last = parts
    room = counter.count(last) - over - 1
    short = fitted(last, room, counter, _CUT) if room > counter.count(_CUT) else None
    return [*kept, short] if short else kept
