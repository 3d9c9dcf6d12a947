"""Every card of the configured folders, strongest first: a stronger one shadows one of its id.

A card is cleaned, scanned and counted once for each content. The files of a folder are bounded, in
a fixed order, and nothing from outside the folder is read.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from remit.config.settings.load import user_file
from remit.config.settings.table import Settings
from remit.config.strict.files import EscapesFolderError, read_inside
from remit.config.strict.kinds import Report
from remit.errors import Place, Problem, by_place
from remit.features.cards.card import MAX_CARD_BYTES, Card, CardSource
from remit.features.cards.ready_card import (
    CardReading,
    CardText,
    Counter,
    ReadyCard,
    is_url,
    no_reference,
    read_card,
    released,
    shown,
)
from remit.text.words import estimate_tokens

FOLDER = "cards"
WORKSPACE = ".remit"
BUILT_IN = Path(__file__).parent / "built_in_cards"
MAX_FOLDERS = 64
MAX_CARDS = 5_000
"""Cards of one folder."""
MAX_ENTRIES = 50_000
"""Names that are looked at in one folder."""
_NOT_A_CARD = "readme.md"
_YOUNG_NS = 50_000_000
"""Two edits so close may have the same times on some file systems."""
_STRENGTH = {source: at for at, source in enumerate(get_args(CardSource))}


class CardRoot(msgspec.Struct, frozen=True):
    """A folder of cards; `is_named` tells that somebody asked for it by name."""

    path: Path
    source: CardSource
    is_named: bool = False


class ShadowedCard(msgspec.Struct, frozen=True):
    """A card that is not used, because a stronger one has its id."""

    id: str
    place: Place
    by: Place

    def __str__(self) -> str:
        return f"{self.id}: {self.by} instead of {self.place}"


class CardSet(msgspec.Struct, frozen=True):
    """What the folders hold; no two cards have one id."""

    cards: tuple[ReadyCard, ...] = ()
    """By id, those in quarantine too."""
    problems: tuple[Problem, ...] = ()
    shadowed: tuple[ShadowedCard, ...] = ()
    problem_count: int = 0
    """All problems; the list ends at a bound."""

    @property
    def quarantined(self) -> tuple[ReadyCard, ...]:
        """Cards that are suspicious and that nobody has approved."""
        return tuple(one for one in self.cards if one.is_quarantined)


def configured_roots(settings: Settings) -> tuple[CardRoot, ...]:
    """The directories of cards, strongest first."""
    return card_roots(
        os.environ, Path.cwd(), settings.card_dirs, workspace=settings.workspace_cards
    )


def card_roots(
    env: Mapping[str, str], cwd: Path, card_dirs: Iterable[Path] = (), *, workspace: bool = False
) -> tuple[CardRoot, ...]:
    """Where cards are looked for, strongest first.

    Of the operator's folders, the later of the setting beats the earlier, and all of them beat the
    one in the user's configuration.
    """
    named = [CardRoot(cwd.absolute() / path, "operator", is_named=True) for path in card_dirs]
    found = [
        CardRoot(BUILT_IN, "built_in"),
        *reversed(named),
        CardRoot(user_file(env).parent / FOLDER, "operator"),
    ]
    if workspace:
        found.append(CardRoot(cwd.absolute() / WORKSPACE / FOLDER, "workspace"))
    # One folder under two names is read once, where it counts most.
    first = {os.path.realpath(one.path): one for one in reversed(found[:MAX_FOLDERS])}
    return tuple(one for one in found if first.get(os.path.realpath(one.path)) is one)


class CardLibrary:
    """Reads folders of cards, and works again only on what has changed since."""

    def __init__(self, roots: Sequence[CardRoot], *, count: Counter = estimate_tokens) -> None:
        self.roots = tuple(roots)
        self._count = count
        self._read: dict[CardText, CardReading] = {}
        self._folders = [CardFolder(root.path, root.source, count) for root in self.roots]

    def stamp(self) -> object:
        """What the folders look like; another one after every edit. Blocks.

        None where an edit is so young that a second one might look the same: nothing equals it.
        """
        now = time.time_ns()
        stamps = [
            folder.stamp()
            for root, folder in zip(self.roots, self._folders, strict=True)
            if root.source != "built_in"
        ]
        ctimes = (times[2] for one in stamps for _, times in one or () if times)
        return None if any(abs(now - ctime) < _YOUNG_NS for ctime in ctimes) else tuple(stamps)

    def load(
        self,
        approved: frozenset[str] = frozenset(),
        texts: Sequence[CardText] = (),
        told: Sequence[Problem] = (),
    ) -> CardSet:
        """Read every folder; blocks, so call it in a worker thread, one call at a time.

        Args:
            approved: content hashes of cards that may be used although they are suspicious.
            texts: cards that lie in no folder.
            told: what is wrong with where these come from.
        """
        report = Report()
        report.extend(told)
        groups = [
            (_STRENGTH[root.source], self._folder(root, folder, report))
            for root, folder in zip(self.roots, self._folders, strict=True)
        ]
        groups += [
            (_STRENGTH[ready.card.source], [ready]) for ready in self._texts_read(texts, report)
        ]
        found: dict[str, ReadyCard] = {}
        shadowed: list[ShadowedCard] = []
        for _, cards in sorted(groups, key=_strength):
            for ready in cards:
                first = found.setdefault(ready.card.id, ready)
                if first is not ready:
                    by = first.card.place
                    shadowed.append(ShadowedCard(ready.card.id, ready.card.place, by))
        return CardSet(
            tuple(released(found[name], approved) for name in sorted(found)),
            tuple(sorted(report.problems, key=by_place)),
            tuple(sorted(shadowed, key=lambda one: (one.id, one.place))),
            report.count,
        )

    def _folder(self, root: CardRoot, folder: "CardFolder", report: Report) -> list[ReadyCard]:
        if not os.path.isdir(root.path):  # noqa: PTH112 - no exception when nobody may look
            _miss(root, report)
            return []
        return _distinct(folder.cards(report), report)

    def _texts_read(self, texts: Sequence[CardText], report: Report) -> list[ReadyCard]:
        """Cards that lie in no folder; one that was read before is not read again."""
        read = {one: self._read.get(one) or self.read(one) for one in texts}
        self._read = read
        for found in read.values():
            report.extend(found.problems)
        return [found.ready for found in read.values() if found.ready is not None]

    def read(self, text: CardText) -> CardReading:
        """Read one card that lies in no folder."""
        return read_card(text, self._count, no_reference)


def _strength(group: tuple[int, list[ReadyCard]]) -> int:
    return group[0]


class CardFolder:
    """Reads a folder; a file whose bytes are known already is not parsed and scanned again."""

    def __init__(self, path: Path, source: CardSource, count: Counter) -> None:
        self._path = path
        self._source: CardSource = source
        self._count = count
        self._known: dict[str, CardReading] = {}

    def cards(self, report: Report) -> Iterator[ReadyCard]:
        """Every card that can be used, by file name; the others are reported."""
        read: dict[str, CardReading] = {}
        for name in self._names(report):
            entry = self._read(name, report)
            if entry is None:
                continue
            read[name] = entry
            report.extend(entry.problems)
            if entry.ready is not None:
                yield entry.ready
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

    def _read(self, name: str, report: Report) -> CardReading | None:
        file = shown(self._path / name)
        try:
            raw = read_inside(self._path, name, MAX_CARD_BYTES)
        except FileNotFoundError:
            if (self._path / name).is_symlink():  # else it was deleted meanwhile
                report.add(Place(file), "unreadable", "a link that leads nowhere", "remove it")
            return None
        except EscapesFolderError as error:
            report.add(Place(file), "unreadable", str(error), "put a plain file there")
            return None
        known = self._known.get(name)
        if known is not None and known.raw == raw:
            card = known.ready.card if known.ready else None
            if card is None or known.reference == self._reference(card, Report()):
                return known
        return read_card(CardText(raw, file, self._source), self._count, self._reference)

    def _reference(self, card: Card, report: Report) -> bytes:
        if not card.reference or is_url(card.reference):
            return b""
        try:
            found = read_inside(self._path, card.reference, MAX_CARD_BYTES)
            if len(found) <= MAX_CARD_BYTES:
                return found
            reason = f"more than {MAX_CARD_BYTES:,} bytes"
        except (OSError, EscapesFolderError) as error:
            reason = str(error)
        message = f"its reference document {card.reference!r} cannot be read: {reason}"
        hint = "put the file there, or take the key out; the card counts without it"
        report.extend([Problem(card.place, "bad_source", message, hint, severity="warning")])
        return b""

    def stamp(self) -> "_Stamp | None":
        """What changes with every edit: names, times and sizes of the files that were read."""
        try:
            with os.scandir(self._path) as entries:
                names = [one.name for _, one in zip(range(MAX_ENTRIES), entries, strict=False)]
        except OSError:
            return None
        ready = (one.ready for one in self._known.values())
        documents = {one.card.reference for one in ready if one and one.reference}
        files = [*sorted(filter(_is_card, names))[:MAX_CARDS], *sorted(documents)]
        return tuple((name, _times(self._path / name)) for name in files)


_Stamp = tuple[tuple[str, tuple[int, ...]], ...]


def _times(path: Path) -> tuple[int, ...]:
    try:
        found = os.stat(path)  # noqa: PTH116 - half of the time of Path.stat
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _is_card(name: str) -> bool:
    return name.endswith(".md") and name[0] not in "._" and name.casefold() != _NOT_A_CARD


def _distinct(cards: Iterable[ReadyCard], report: Report) -> list[ReadyCard]:
    """The cards of one folder; of two with one id, that in the first file."""
    found: dict[str, ReadyCard] = {}
    for ready in cards:
        first = found.setdefault(ready.card.id, ready)
        if first is not ready:
            message = f"the id {ready.card.id!r} stands already at {first.card.place}"
            hint = "give one of the two another id; this one is left out"
            report.add(ready.card.place, "duplicate_id", message, hint)
    return list(found.values())


def _miss(root: CardRoot, report: Report) -> None:
    if root.is_named:
        hint = "make it, or take it out of the setting card_dirs"
        message = "there is no such folder of cards"
        place = Place(shown(root.path))
        report.extend([Problem(place, "not_found", message, hint, severity="warning")])
