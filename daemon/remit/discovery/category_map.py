"""The map: which categories there are in a view, always inside its ceiling."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

from remit.discovery.counting import TokenCounter
from remit.discovery.cutting import shortened_to
from remit.discovery.texts import LABEL, name_of
from remit.discovery.view import View
from remit.model.meta_tool import META_TOOL

_HEAD = "Capability categories:"
_TAIL = f"Call {META_TOOL} to find what you need."
_NAMES = 6
"""Names of one category, at most."""
_KEPT = 16
"""Maps of one view, for different counters and ceilings."""

Group = tuple[str, int, tuple[str, ...]]
_MAPS: WeakKeyDictionary[View, dict[tuple[TokenCounter, int], str]] = WeakKeyDictionary()


def category_map(view: View, limit: int, counter: TokenCounter) -> str:
    """The map of a view in at most `limit` tokens; empty when not even one line fits."""
    known = _MAPS.setdefault(view, {})
    text = known.get((counter, limit))
    if text is None:
        text = _drawn(_groups(view), limit, counter)
        if len(known) >= _KEPT:
            known.clear()
        known[counter, limit] = text
    return text


def _groups(view: View) -> list[Group]:
    """Label, number and first names of each category, the largest first."""
    found = view.by_category()
    names = {
        label: tuple(
            shortened_to(name_of(view.index.descriptors[row]), LABEL) for row in rows[:_NAMES]
        )
        for label, rows in found.items()
    }
    order = sorted(found, key=lambda label: (-len(found[label]), label.casefold()))
    return [(label, len(found[label]), names[label]) for label in order]


def _drawn(groups: list[Group], limit: int, counter: TokenCounter) -> str:
    def fits(text: str) -> bool:
        return len(text) <= limit * 64 and counter.count(text) <= limit

    for names in range(_NAMES, -1, -1):
        text = _text(groups, names, len(groups))
        if fits(text):
            return text
    kept = _most(len(groups), lambda count: fits(_text(groups, 0, count)))
    if kept is not None:
        return _text(groups, 0, kept)
    total = sum(count for _label, count, _names in groups)
    shortest = (f"{total} capabilities. {_TAIL}", _TAIL, META_TOOL)
    return next((text for text in shortest if fits(text)), "")


def _most(high: int, fits: Callable[[int], bool]) -> int | None:
    """The largest number below `high` that fits, when fitting gets harder with each; or None."""
    if not fits(0):
        return None
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _text(groups: list[Group], names: int, kept: int) -> str:
    if not groups:
        return f"No capabilities are offered.\n{_TAIL}"
    lines = [_HEAD, *(_line(group, names) for group in groups[:kept])]
    rest = groups[kept:]
    if rest:
        lines.append(f"- other (+{len(rest)}) ({sum(count for _l, count, _n in rest)})")
    return "\n".join([*lines, _TAIL])


def _line(group: Group, most: int) -> str:
    label, count, names = group
    shown = names[:most]
    if not shown:
        return f"- {label} ({count})"
    more = f" (+{count - len(shown)} more)" if count > len(shown) else ""
    return f"- {label}: {', '.join(shown)}{more} ({count})"
