"""The three tiers of an answer, each inside its ceiling and all of them inside the total.

The map comes first, then one line a hit, then full texts with what is left. What is too long is cut
where a reader would cut it, or left out and named; no single hit takes the room of the others.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import msgspec

from remit.errors import DefinitionError
from remit.features.discovery.cutting import Cuttable, Packed, fitted, packed, shortened_to
from remit.features.discovery.questions import MAX_HITS, Budgets
from remit.features.discovery.texts import (
    LABEL,
    Line,
    Texts,
    detail_text,
    has_content,
    name_of,
    texts_of,
)
from remit.model.descriptor import META_TOOL, Descriptor
from remit.text.counting import TokenCounter
from remit.text.fence import fenced
from remit.text.unicode import one_line

if TYPE_CHECKING:
    from remit.features.discovery.rank import Hit
    from remit.features.discovery.view import View

# The map: which categories there are in a view, always inside its ceiling.


_MAP_HEAD = "Capability categories:"
_TAIL = f"Call {META_TOOL} to find what you need."
_NAMES = 6
"""Names of one category, at most."""
_KEPT = 16
"""Maps of one view, for different counters and ceilings."""

Group = tuple[str, int, tuple[str, ...]]
_MAPS: WeakKeyDictionary["View", dict[tuple[TokenCounter, int], str]] = WeakKeyDictionary()


def category_map(view: "View", limit: int, counter: TokenCounter) -> str:
    """The map of a view in at most `limit` tokens; empty when not even one line fits."""
    known = _MAPS.setdefault(view, {})
    text = known.get((counter, limit))
    if text is None:
        text = _drawn(_groups(view), limit, counter)
        if len(known) >= _KEPT:
            known.clear()
        known[counter, limit] = text
    return text


def _groups(view: "View") -> list[Group]:
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
    lines = [_MAP_HEAD, *(_map_line(group, names) for group in groups[:kept])]
    rest = groups[kept:]
    if rest:
        lines.append(f"- other (+{len(rest)}) ({sum(count for _l, count, _n in rest)})")
    return "\n".join([*lines, _TAIL])


def _map_line(group: Group, most: int) -> str:
    label, count, names = group
    shown = names[:most]
    if not shown:
        return f"- {label} ({count})"
    more = f" (+{count - len(shown)} more)" if count > len(shown) else ""
    return f"- {label}: {', '.join(shown)}{more} ({count})"


Tier = Literal["map", "summary", "detail"]
_HEAD = "Relevant capabilities:"
_LEAST = 48
"""Tokens below which the beginning of a full text tells nothing."""


class TierTokens(msgspec.Struct, frozen=True):
    """A number of tokens for each tier."""

    map: int
    summary: int
    detail: int
    total: int


class Skipped(msgspec.Struct, frozen=True):
    """A hit that a tier does not show."""

    id: str
    tier: Tier
    reason: str


class Tiered(msgspec.Struct, frozen=True):
    """The texts of an answer and their bill."""

    map: str
    summary: str
    detail: str
    tokens: TierTokens
    limits: TierTokens
    skipped: tuple[Skipped, ...] = ()
    summarised: tuple[str, ...] = ()
    """Ids with a line in the summary."""
    detailed: tuple[str, ...] = ()
    """Ids with a full text, or the beginning of one."""


def assemble(
    view: "View",
    hits: Sequence["Hit"],
    budgets: Budgets,
    counter: TokenCounter,
    content: Callable[[Descriptor], str],
) -> Tiered:
    """The tiers for these hits; `content` reads the full text of a skill, or raises OSError."""
    texts = texts_of(view.index)
    overview = category_map(view, min(budgets.map, budgets.total), counter)
    spent = counter.count(overview)
    lines = _lines(view, texts, list(_shown(view, hits, budgets.top_k)), counter)
    summary = packed(_HEAD, "\n", lines, min(budgets.summary, budgets.total - spent), counter)
    spent += summary.tokens
    room = min(budgets.detail, budgets.total - spent - counter.count(fenced("")))
    details, unread = _details(view, hits, budgets, counter, content)
    detail = packed("", "\n\n", details, room, counter)
    used = (counter.count(overview), summary.tokens, detail.tokens)
    return Tiered(
        overview,
        summary.text,
        detail.text,
        TierTokens(*used, sum(used)),
        TierTokens(budgets.map, budgets.summary, budgets.detail, budgets.total),
        (*_without_place(summary, "summary"), *unread, *_without_place(detail, "detail")),
        summary.ids,
        detail.ids,
    )


def _shown(view: "View", hits: Sequence["Hit"], top_k: int) -> Iterator[tuple[int, "Hit"]]:
    """The best hits with their numbers, each followed by what it pulled in, which has none."""
    rows: set[int] = set()
    number = 0
    for hit in hits[: 4 * MAX_HITS]:
        if hit.row in rows or not view.sees(hit.row) or len(rows) >= MAX_HITS:
            continue
        if hit.pulled_in_by is None and number < top_k:
            number += 1
            rows.add(hit.row)
            yield number, hit
        elif hit.pulled_in_by in rows:
            rows.add(hit.row)
            yield 0, hit


def _lines(
    view: "View", texts: Texts, shown: Sequence[tuple[int, "Hit"]], counter: TokenCounter
) -> list[Cuttable]:
    """A summary line for each hit, under its id where two have one name."""
    lines = [_line(view, texts, hit.row) for _number, hit in shown]
    alike = Counter(line.name for line in lines)
    entries = []
    for (number, hit), line in zip(shown, lines, strict=True):
        name = f"{number}. " if number else f"+ with {_parent(view, hit)}: "
        name += line.name if alike[line.name] == 1 else line.full_name
        entries.append(
            Cuttable(
                view.index.descriptors[hit.row].id,
                line.text(name),
                partial(_short_line, name, line, counter),
            )
        )
    return entries


def _parent(view: "View", hit: "Hit") -> str:
    return name_of(view.descriptor(hit.pulled_in_by or 0))


def _line(view: "View", texts: Texts, row: int) -> Line:
    if not view.is_renamed(row):
        return texts.line(row)
    return Line(view.descriptor(row), view.index.graph.missing.get(row, ()))


def _detail(view: "View", texts: Texts, row: int, content: str) -> str:
    if not view.is_renamed(row):
        return texts.detail(row, content)
    return detail_text(view.descriptor(row), content, view.index.graph.missing.get(row, ()))


def _short_line(name: str, line: Line, counter: TokenCounter, room: int) -> str | None:
    """The line with less of its description, or the name alone."""
    short = fitted(f"{name} {line.about}", room, counter, "…") if line.about else None
    if short is not None and len(short) > len(name) + 1 and short.startswith(name):
        return short
    return name if counter.count(name) <= room else None


def _details(
    view: "View",
    hits: Sequence["Hit"],
    budgets: Budgets,
    counter: TokenCounter,
    content: Callable[[Descriptor], str],
) -> tuple[list[Cuttable], list[Skipped]]:
    """The full texts of the best that can be read."""
    texts = texts_of(view.index)
    entries: list[Cuttable] = []
    unread: list[Skipped] = []
    for _number, hit in _shown(view, hits, max(budgets.top_k, budgets.top_n)):
        if len(entries) >= budgets.top_n:
            break
        descriptor = view.index.descriptors[hit.row]
        if hit.pulled_in_by is not None:
            continue
        try:
            read = content(descriptor) if has_content(descriptor) else ""
            text = _detail(view, texts, hit.row, read)
        except (OSError, UnicodeError, DefinitionError) as error:
            unread.append(Skipped(descriptor.id, "detail", _why(error)))
            continue
        cut = partial(_short_detail, f"{view.way} {one_line(descriptor.id)}", text, counter)
        entries.append(Cuttable(descriptor.id, text, cut))
    return entries, unread


def _short_detail(way: str, text: str, counter: TokenCounter, room: int) -> str | None:
    mark = f"\n[cut here; all of it: {way}]"
    return fitted(text, room, counter, mark) if room >= _LEAST else None


def _without_place(done: Packed, tier: Tier) -> list[Skipped]:
    return [Skipped(one, tier, f"it does not fit the {tier} tier") for one in done.left_out]


def _why(error: OSError | UnicodeError | DefinitionError) -> str:
    """What went wrong, without the path that stands in the message."""
    match error:
        case OSError():
            reason = error.strerror or type(error).__name__
        case DefinitionError(problems=[first, *_]):
            reason = first.code
        case _:
            reason = "it is not UTF-8"
    return f"its text cannot be read: {reason}"


# The text that goes into a prompt: the tiers between a fence, inside the total budget.


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
