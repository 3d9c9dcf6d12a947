"""Finds text that was written to steer an agent: rules in linear time, points, a verdict.

A text is read up to a bound; what is longer counts as suspicious, for nobody has read the rest.
Text is matched as it is meant to be read: without disguise, decoded once, spaces between letters
closed. The points of different rules add up where they stand near each other, so a long honest text
that uses one doubtful word here and another there stays below the threshold.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from remit.errors import Place
from remit.features.scan.rules import (
    SUSPICIOUS,
    Category,
    ScanRule,
    ScanRulesError,
    Severity,
    all_rules,
    repair_of,
    severity_of,
)
from remit.features.scan.text_view import (
    TextView,
    decoded_chunks,
    fold_pattern,
    hidden_marks,
    plain,
    respelt,
    rotated,
    spaced,
    turned,
    unleeted,
)

MAX_CHARS = 1_000_000
MAX_FINDINGS = 50
MAX_EACH = 8
"""How often one rule is told for one text."""
WINDOW = 1_200
"""Characters within which points add up."""
_EXCERPT = 100
_BEFORE, _AFTER = 60, 40
_NOWHERE = Place("text")
_DISGUISE = 20
"""Points for saying it in code, on top of what is said."""


class ScanFinding(msgspec.Struct, frozen=True):
    """Something suspicious at a place, and what to do about it."""

    rule: str
    category: Category
    severity: Severity
    weight: int
    place: Place
    excerpt: str
    advice: str


class ScanReport(msgspec.Struct, frozen=True):
    """The verdict on one text; the findings stand in the order of their places."""

    score: int
    """Points of the worst part, 0 to 100."""
    suspicious: bool
    findings: tuple[ScanFinding, ...] = ()


class _Hit(msgspec.Struct, frozen=True):
    """A finding before it is written out."""

    at: int
    length: int
    rule: str
    category: Category
    weight: int


def scan(text: str, *, where: Place | None = None) -> ScanReport:
    """Look for text that steers an agent; `where` is the place of the first character."""
    read = text[:MAX_CHARS]
    view = plain(read)
    hits = [*_matched(view), *_disguised(view), *_coded(read)]
    hits += [_Hit(one.at, 1, one.rule, one.category, one.weight) for one in hidden_marks(read)]
    if len(text) > MAX_CHARS:
        hits.append(_Hit(MAX_CHARS, 0, "scan.too_long", "incomplete_scan", SUSPICIOUS))
    hits = sorted(set(hits), key=lambda hit: (hit.at, hit.rule))
    score = _score(hits)
    return ScanReport(score, score >= SUSPICIOUS, _findings(hits, text, where or _NOWHERE))


class _CompiledRule(msgspec.Struct, frozen=True):
    rule: ScanRule
    pattern: Any
    unless: Any


class RuleEngine:
    """Compiled rules behind one filter, which tells in one pass which of them can match at all.

    Compact: for words that were run together, so nothing has to stand between them.

    Raises:
        ScanRulesError: a pattern is no RE2.
    """

    def __init__(self, rules: Iterable[ScanRule], *, compact: bool = False) -> None:
        import re2  # noqa: PLC0415 - a native library: commands that scan nothing do not load it

        options = re2.Options()
        options.max_mem = 64 << 20
        options.log_errors = False
        self._filter = re2.Filter()
        self._rules: list[_CompiledRule] = []
        for rule in rules:
            pattern = fold_pattern(_run_together(rule.pattern) if compact else rule.pattern)
            try:
                compiled = re2.compile(pattern, options)
                unless = re2.compile(fold_pattern(rule.unless), options) if rule.unless else None
            except re2.error as error:
                raise ScanRulesError(f"the rule {rule.id!r} is no pattern: {error}") from error
            self._filter.Add(pattern, options)
            self._rules.append(_CompiledRule(rule, compiled, unless))
        self._filter.Compile()

    def hits(self, text: str, *, least: int = 0) -> list[tuple[ScanRule, int, int]]:
        """Every rule of this weight or more that matches: where, and how much."""
        found: list[tuple[ScanRule, int, int]] = []
        for index in self._filter.Match(text, potential=True) or ():
            one = self._rules[index]
            if one.rule.weight < least:
                continue
            for match in islice(one.pattern.finditer(text), MAX_EACH):
                start, end = match.span()
                around = text[max(0, start - _BEFORE) : end + _AFTER]
                if one.unless is None or not one.unless.search(around):
                    found.append((one.rule, start, end))
        return found


def _run_together(pattern: str) -> str:
    return pattern.replace(r"\W+", r"\W*").replace(r"\w+", r"\w{1,8}").replace(r"\b", "")


@cache
def _engine() -> RuleEngine:
    return RuleEngine(all_rules())


@cache
def _compact_engine() -> RuleEngine:
    return RuleEngine((rule for rule in all_rules() if rule.compact), compact=True)


def _matched(view: TextView, *, least: int = 0) -> list[_Hit]:
    return [
        _Hit(view.origin(start), end - start, rule.id, rule.category, rule.weight)
        for rule, start, end in _engine().hits(view.text, least=least)
    ]


def _disguised(view: TextView) -> list[_Hit]:
    """What is said in leetspeak, misspelt, backwards, by ROT13 or letter by letter."""
    hits: list[_Hit] = []
    for word, at in spaced(view)[:MAX_FINDINGS]:
        hits += [
            _Hit(at, len(word) * 2, rule.id, rule.category, rule.weight)
            for rule, _, _ in _compact_engine().hits(word)
        ]
    known = {hit.rule for hit in hits}
    plainer = unleeted(view)
    spelt = respelt(plainer or view) or plainer
    for other in (spelt, turned(view), rotated(view)):
        if other is not None:
            heavy = _matched(other, least=SUSPICIOUS)
            hits += [hit for hit in heavy if hit.rule not in known]
    return hits


def _coded(text: str) -> list[_Hit]:
    hits: list[_Hit] = []
    for chunk, at in decoded_chunks(text):
        found = _engine().hits(plain(chunk).text)
        hits += [_Hit(at, 40, rule.id, rule.category, rule.weight) for rule, _, _ in found]
        if found:
            hits.append(_Hit(at, 40, "encoded.payload", "encoded_payload", _DISGUISE))
    return hits


def _score(hits: list[_Hit]) -> int:
    """The points of the worst window, each rule counted once in it."""
    best = 0
    first = 0
    counts: dict[str, int] = {}
    weights: dict[str, int] = {}
    for hit in hits:
        counts[hit.rule] = counts.get(hit.rule, 0) + 1
        weights[hit.rule] = max(hit.weight, weights.get(hit.rule, 0))
        while hits[first].at < hit.at - WINDOW:
            counts[hits[first].rule] -= 1
            first += 1
        best = max(best, sum(weights[rule] for rule, count in counts.items() if count))
    return min(best, 100)


def _findings(hits: list[_Hit], text: str, where: Place) -> tuple[ScanFinding, ...]:
    """The heaviest of the hits, in order of place."""
    told: dict[str, int] = {}
    kept: list[_Hit] = []
    for hit in sorted(hits, key=lambda one: (-one.weight, one.at)):
        told[hit.rule] = told.get(hit.rule, 0) + 1
        if told[hit.rule] <= MAX_EACH and len(kept) < MAX_FINDINGS:
            kept.append(hit)
    lines = [0, *(match.end() for match in re.finditer("\n", text))] if kept else [0]
    return tuple(
        ScanFinding(
            hit.rule,
            hit.category,
            severity_of(hit.weight),
            hit.weight,
            _place(hit.at, lines, where),
            excerpt(text, hit.at, hit.length),
            repair_of(hit.rule, hit.category),
        )
        for hit in sorted(kept, key=lambda one: (one.at, one.rule))
    )


def _place(at: int, lines: list[int], where: Place) -> Place:
    line = bisect_right(lines, at) - 1
    column = at - lines[line] + (where.column if line == 0 else 1)
    return Place(where.file, where.line + line, column)


def excerpt(text: str, at: int, length: int) -> str:
    """What stands there, on one line, with a dot for what cannot be shown."""
    shown = text[at : at + min(max(length, 1), _EXCERPT)]
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "·" for char in shown
    ).strip()
