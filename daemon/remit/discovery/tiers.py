"""The three tiers of an answer, each inside its ceiling and all of them inside the total.

The map comes first, then one line a hit, then full texts with what is left. What is too long is cut
where a reader would cut it, or left out and named; no single hit takes the room of the others.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Annotated, Literal

import msgspec

from remit.discovery.category_map import category_map
from remit.discovery.cleaning import one_line
from remit.discovery.counting import TokenCounter
from remit.discovery.cutting import fitted
from remit.discovery.packing import Entry, Packed, packed
from remit.discovery.rank import Hit
from remit.discovery.texts import Line, Texts, detail_text, has_content, name_of, texts_of
from remit.discovery.view import View
from remit.errors import InvalidDataError
from remit.model.descriptor import Descriptor
from remit.model.fence import fenced
from remit.model.place import DefinitionError

Tier = Literal["map", "summary", "detail"]
MAX_TOKENS = 100_000
MAX_HITS = 100
_HEAD = "Relevant capabilities:"
_LEAST = 48
"""Tokens below which the beginning of a full text tells nothing."""

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)]
Hits = Annotated[int, msgspec.Meta(ge=0, le=MAX_HITS)]


class Budgets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ceilings in tokens, and how many hits are shown."""

    map: Tokens = 200
    summary: Tokens = 800
    detail: Tokens = 2_000
    total: Tokens = 1_850
    """For the three together, and for the text that is rendered from them."""
    top_k: Hits = 5
    top_n: Hits = 2

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            most = MAX_HITS if name.startswith("top_") else MAX_TOKENS
            value = getattr(self, name)
            if not isinstance(value, int) or not 0 <= value <= most:
                raise InvalidDataError(
                    f"the budget {name} is {value!r}",
                    hint=f"choose a number from 0 to {most}",
                    details={"path": name},
                )


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
    view: View,
    hits: Sequence[Hit],
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


def _shown(view: View, hits: Sequence[Hit], top_k: int) -> Iterator[tuple[int, Hit]]:
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
    view: View, texts: Texts, shown: Sequence[tuple[int, Hit]], counter: TokenCounter
) -> list[Entry]:
    """A summary line for each hit, under its id where two have one name."""
    lines = [_line(view, texts, hit.row) for _number, hit in shown]
    alike = Counter(line.name for line in lines)
    entries = []
    for (number, hit), line in zip(shown, lines, strict=True):
        name = f"{number}. " if number else f"+ with {_parent(view, hit)}: "
        name += line.name if alike[line.name] == 1 else line.full_name
        entries.append(
            Entry(
                view.index.descriptors[hit.row].id,
                line.text(name),
                partial(_short_line, name, line, counter),
            )
        )
    return entries


def _parent(view: View, hit: Hit) -> str:
    return name_of(view.descriptor(hit.pulled_in_by or 0))


def _line(view: View, texts: Texts, row: int) -> Line:
    if not view.is_renamed(row):
        return texts.line(row)
    return Line(view.descriptor(row), view.index.graph.missing.get(row, ()))


def _detail(view: View, texts: Texts, row: int, content: str) -> str:
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
    view: View,
    hits: Sequence[Hit],
    budgets: Budgets,
    counter: TokenCounter,
    content: Callable[[Descriptor], str],
) -> tuple[list[Entry], list[Skipped]]:
    """The full texts of the best that can be read."""
    texts = texts_of(view.index)
    entries: list[Entry] = []
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
        entries.append(Entry(descriptor.id, text, cut))
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
