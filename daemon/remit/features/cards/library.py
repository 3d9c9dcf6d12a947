"""The library of cards: those that come with remit, the operator's, and the workspace's.

An id that stands in two of them is taken from the first: nobody who wrote a repository replaces
what the operator says, and nobody at all what remit says about itself.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from remit.config.settings.load import user_file
from remit.config.strict.kinds import Report
from remit.features.cards.folder import CardFolder, Counter, ReadyCard, shown
from remit.model.card import CardSource
from remit.model.place import Place, Problem, by_place
from remit.text.words import estimate_tokens

FOLDER = "cards"
WORKSPACE = ".remit"
BUILT_IN = Path(__file__).parent / "built_in_cards"
MAX_FOLDERS = 64


class CardRoot(msgspec.Struct, frozen=True):
    """A folder of cards; `is_named` tells that somebody asked for it by name."""

    path: Path
    source: CardSource
    is_named: bool = False


class Shadowed(msgspec.Struct, frozen=True):
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
    shadowed: tuple[Shadowed, ...] = ()
    problem_count: int = 0
    """All problems; the list ends at a bound."""

    @property
    def quarantined(self) -> tuple[ReadyCard, ...]:
        """Cards that are suspicious and that nobody has approved."""
        return tuple(one for one in self.cards if one.is_quarantined)


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
        shadowed: list[Shadowed] = []
        for root, folder in zip(self.roots, self._folders, strict=True):
            if not os.path.isdir(root.path):  # noqa: PTH112 - no exception when nobody may look
                _miss(root, report)
                continue
            for ready in _distinct(folder.cards(report), report):
                first = found.setdefault(ready.card.id, ready)
                if first is not ready:
                    by = first.card.place
                    shadowed.append(Shadowed(ready.card.id, ready.card.place, by))
        return CardSet(
            tuple(released(found[name], approved) for name in sorted(found)),
            tuple(sorted(report.problems, key=by_place)),
            tuple(sorted(shadowed, key=lambda one: (one.id, one.place))),
            report.count,
        )


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
