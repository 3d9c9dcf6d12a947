"""Every card of the configured folders, strongest first: a stronger one shadows one of its id.

A card is cleaned, scanned and counted once for each content. The files of a folder are bounded, in
a fixed order, and nothing from outside the folder is read.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from remit.config.definitions.files import Files
from remit.config.settings.load import user_file
from remit.config.settings.table import Settings
from remit.config.strict.files import EscapesFolderError, read_inside
from remit.config.strict.kinds import Report
from remit.errors import Place, Problem, by_place
from remit.features.cards.card import MAX_CARD_BYTES, Card, CardSource, read_card_file
from remit.features.scan.scanner import ScanFinding, scan
from remit.text.sanitise import Replacement, sanitise
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

Counter = Callable[[str], int]
"""How many tokens a text has."""


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


class ReadyCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card whose texts may be shown, unless it is in quarantine."""

    card: Card
    """As its file says it, with every text cleaned."""
    content_hash: str
    """Of the whole file: an approval counts for exactly these bytes."""
    tokens: int
    is_quarantined: bool = False
    score: int = 0
    """How suspicious its texts are, 0 to 100."""
    findings: tuple[ScanFinding, ...] = ()
    changes: tuple[Replacement, ...] = ()
    """What was taken out of its text, or made harmless."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is suspicious, in words."""
        return tuple(
            f"{one.place}: {one.category} [{one.rule}] {one.excerpt}" for one in self.findings
        )


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
        self._folders = [CardFolder(root.path, root.source, count) for root in self.roots]

    def load(self, approved: frozenset[str] = frozenset()) -> CardSet:
        """Read every folder; blocks, so call it in a worker thread, one call at a time.

        Args:
            approved: content hashes of cards that may be used although they are suspicious.
        """
        report = Report()
        found: dict[str, ReadyCard] = {}
        shadowed: list[ShadowedCard] = []
        for root, folder in zip(self.roots, self._folders, strict=True):
            if not os.path.isdir(root.path):  # noqa: PTH112 - no exception when nobody may look
                _miss(root, report)
                continue
            for ready in _distinct(folder.cards(report), report):
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


_Known = dict[str, tuple[bytes, ReadyCard | None, tuple[Problem, ...]]]
"""By file: what was read, and what came of it."""


class CardFolder:
    """Reads a folder; a file whose bytes are known already is not parsed and scanned again."""

    def __init__(self, path: Path, source: CardSource, count: Counter) -> None:
        self._path = path
        self._source: CardSource = source
        self._count = count
        self._known: _Known = {}

    def cards(self, report: Report) -> Iterator[ReadyCard]:
        """Every card that can be used, by file name; the others are reported."""
        read: _Known = {}
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
        except EscapesFolderError as error:
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


def hash_content(raw: bytes) -> str:
    """What stands for the bytes of a file in an approval."""
    return sha256(raw).hexdigest()


def make_ready(card: Card, raw: bytes, count: Counter) -> ReadyCard:
    """Clean, scan and count a card; one that is suspicious is in quarantine until approved."""
    body = scan(card.text, where=Place(card.place.file, _first_line(raw, card)))
    # The texts of the frontmatter are put before agents too, and read by rankers.
    texts = (card.name, card.description, *card.triggers.keywords)
    above = scan("\n".join(texts), where=card.place)
    # Joined they have no lines of their own in the file.
    told = (msgspec.structs.replace(one, place=card.place) for one in above.findings)
    cleaned = sanitise(card.text)
    keywords = tuple(word for text in card.triggers.keywords if (word := _one_line(text)))
    shown = msgspec.structs.replace(
        card,
        text=cleaned.text,
        name=_one_line(card.name),
        description=_one_line(card.description),
        triggers=msgspec.structs.replace(card.triggers, keywords=keywords),
    )
    return ReadyCard(
        card=shown,
        content_hash=hash_content(raw),
        tokens=count(shown.text),
        is_quarantined=body.suspicious or above.suspicious,
        score=max(body.score, above.score),
        findings=(*told, *body.findings),
        changes=cleaned.changes,
    )


def _one_line(text: str) -> str:
    return " ".join(sanitise(text).text.split())


def _first_line(raw: bytes, card: Card) -> int:
    """The line of the file on which the text of a card begins."""
    text = raw.decode("utf-8-sig", "replace")
    at = text.rfind(card.text)
    return text.count("\n", 0, at) + 1 if at >= 0 else 1


def released(ready: ReadyCard, approved: frozenset[str]) -> ReadyCard:
    """The card, out of quarantine if exactly this content was approved."""
    if ready.is_quarantined and ready.content_hash in approved:
        return msgspec.structs.replace(ready, is_quarantined=False)
    return ready


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
