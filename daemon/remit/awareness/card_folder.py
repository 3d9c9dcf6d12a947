"""The files of one folder of cards: bounded, in a fixed order, nothing from outside the folder."""

import os
from collections.abc import Iterator
from pathlib import Path

from remit.awareness.ready_card import Counter, ReadyCard, make_ready
from remit.config.card_file import MAX_CARD_BYTES, read_card_file
from remit.config.files import Files
from remit.config.inside import NotInsideError, read_inside
from remit.config.kinds import Report
from remit.model.card import CardSource
from remit.model.place import Place, Problem

MAX_CARDS = 5_000
"""Cards of one folder."""
MAX_ENTRIES = 50_000
"""Names that are looked at in one folder."""
_NOT_A_CARD = "readme.md"

Known = dict[str, tuple[bytes, ReadyCard | None, tuple[Problem, ...]]]
"""By file: what was read, and what came of it."""


class CardFolder:
    """Reads a folder; a file whose bytes are known already is not parsed and scanned again."""

    def __init__(self, path: Path, source: CardSource, count: Counter) -> None:
        self._path = path
        self._source: CardSource = source
        self._count = count
        self._known: Known = {}

    def cards(self, report: Report) -> Iterator[ReadyCard]:
        """Every card that can be used, by file name; the others are reported."""
        read: Known = {}
        for name in self._names(report):
            entry = self._read(name, report)
            if entry is None:
                continue
            read[name] = entry
            report.extend(entry[2])
            if entry[1] is not None:
                yield entry[1]
        self._known = read

    def _names(self, report: Report) -> list[str]:
        names: list[str] = []
        try:
            with os.scandir(self._path) as entries:
                for count, entry in enumerate(entries):
                    if count >= MAX_ENTRIES or len(names) >= MAX_CARDS:
                        message = f"more than {MAX_CARDS:,} cards or {MAX_ENTRIES:,} files"
                        hint = "split the folder; the rest is not read"
                        report.add(Place(shown(self._path)), "too_large", message, hint)
                        break
                    if _is_card(entry.name):
                        names.append(entry.name)
        except OSError as error:
            message = f"cannot be read: {error.strerror or error}"
            report.add(Place(shown(self._path)), "unreadable", message)
        return sorted(names)

    def _read(
        self, name: str, report: Report
    ) -> tuple[bytes, ReadyCard | None, tuple[Problem, ...]] | None:
        file = shown(self._path / name)
        try:
            raw = read_inside(self._path, name, MAX_CARD_BYTES)
        except FileNotFoundError:
            if (self._path / name).is_symlink():  # else it was deleted meanwhile
                report.add(Place(file), "unreadable", "a link that leads nowhere", "remove it")
            return None
        except NotInsideError as error:
            report.add(Place(file), "unreadable", str(error), "put a plain file there")
            return None
        known = self._known.get(name)
        return known if known is not None and known[0] == raw else self._parse(raw, file)

    def _parse(self, raw: bytes, file: str) -> tuple[bytes, ReadyCard | None, tuple[Problem, ...]]:
        own = Report()
        card = read_card_file(raw, file, self._source, own)
        ready = None if card is None else make_ready(card, raw, self._count)
        problems = list(own.problems)
        if ready is not None and ready.tokens > ready.card.token_budget:
            problems.append(_over_budget(ready))
        return raw, ready, Files("", contents={file: raw}).illustrate(problems)


def _over_budget(ready: ReadyCard) -> Problem:
    card = ready.card
    message = f"the text has {ready.tokens:,} tokens and the card allows {card.token_budget:,}"
    hint = "it is not injected: shorten it, or raise token_budget"
    return Problem(card.place, "over_budget", message, hint, severity="warning")


def _is_card(name: str) -> bool:
    return name.endswith(".md") and name[0] not in "._" and name.casefold() != _NOT_A_CARD


def shown(path: Path) -> str:
    """A path as text that can be printed and sent, whatever bytes it is made of."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
