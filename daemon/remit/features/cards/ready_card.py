"""A card that may be shown: cleaned, scanned, counted; in quarantine where it is suspicious."""

import os
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from remit.config.definitions.files import Files
from remit.config.strict.kinds import Report
from remit.errors import Place, Problem
from remit.features.cards.card import Card, CardSource, read_card_file
from remit.features.scan.scanner import ScanFinding, scan
from remit.text.sanitise import Replacement, sanitise

Counter = Callable[[str], int]
"""How many tokens a text has."""
ReadReference = Callable[[Card, Report], bytes]
"""Reads the reference document of a card; empty where there is none."""


class CardText(msgspec.Struct, frozen=True):
    """A card as it came from somewhere."""

    raw: bytes
    file: str
    """Where it came from, for people."""
    source: CardSource


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
    reference: str = ""
    """The text of its reference document, cleaned."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is suspicious, in words."""
        return tuple(
            f"{one.place}: {one.category} [{one.rule}] {one.excerpt}" for one in self.findings
        )


class CardReading(msgspec.Struct, frozen=True):
    """What came of reading one card."""

    raw: bytes
    reference: bytes
    ready: ReadyCard | None
    problems: tuple[Problem, ...]


def read_card(text: CardText, count: Counter, read_reference: ReadReference) -> CardReading:
    """Read, clean, scan and count one card."""
    own = Report()
    card = read_card_file(text.raw, text.file, text.source, own)
    reference = read_reference(card, own) if card else b""
    ready = None if card is None else make_ready(card, text.raw, count, reference)
    problems = list(own.problems)
    if ready is not None and ready.tokens > ready.card.token_budget:
        problems.append(_over_budget(ready))
    illustrated = Files("", contents={text.file: text.raw}).illustrate(problems)
    return CardReading(text.raw, reference, ready, illustrated)


def no_reference(card: Card, report: Report) -> bytes:
    """The reference document of a card that lies in no folder: it can only be a URL."""
    if card.reference and not is_url(card.reference):
        message = f"the card lies in no folder, so {card.reference!r} is not there"
        hint = "write the https URL of its reference document"
        report.extend([Problem(card.place, "bad_source", message, hint, severity="warning")])
    return b""


def is_url(reference: str) -> bool:
    """Tell whether a reference is a URL, which nobody here fetches."""
    return reference.startswith("https://")


def shown(path: Path) -> str:
    """A path as text that can be printed and sent, whatever bytes it is made of."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def hash_content(raw: bytes) -> str:
    """What stands for the bytes of a file in an approval."""
    return sha256(raw).hexdigest()


def make_ready(card: Card, raw: bytes, count: Counter, reference: bytes = b"") -> ReadyCard:
    """Clean, scan and count a card; one that is suspicious is in quarantine until approved."""
    document = reference.decode("utf-8-sig", "replace")
    behind = scan(document, where=Place(card.reference))
    body = scan(card.text, where=Place(card.place.file, _first_line(raw, card)))
    # The texts of the frontmatter are put before agents too, and read by rankers.
    asked = card.triggers
    texts = (card.name, card.description, *asked.keywords, *asked.context, *asked.unless)
    above = scan("\n".join(texts), where=card.place)
    # Joined they have no lines of their own in the file.
    told = (msgspec.structs.replace(one, place=card.place) for one in above.findings)
    cleaned = sanitise(card.text)
    shown = msgspec.structs.replace(
        card,
        text=cleaned.text + _more(card, document),
        name=_one_line(card.name),
        description=_one_line(card.description),
        triggers=msgspec.structs.replace(
            asked,
            keywords=_lines(asked.keywords),
            context=_lines(asked.context),
            unless=_lines(asked.unless),
        ),
    )
    return ReadyCard(
        card=shown,
        content_hash=hash_content(raw + b"\0" + reference if reference else raw),
        tokens=count(shown.text),
        is_quarantined=body.suspicious or above.suspicious or behind.suspicious,
        score=max(body.score, above.score, behind.score),
        findings=(*told, *body.findings, *behind.findings),
        changes=cleaned.changes,
        reference=sanitise(document).text.strip(),
    )


def _more(card: Card, document: str) -> str:
    if is_url(card.reference):
        return f"\n\nMore: {card.reference}"
    return f"\n\nMore: `awareness:read` with `id: {card.id}`." if document else ""


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for text in texts if (word := _one_line(text)))


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


def _over_budget(ready: ReadyCard) -> Problem:
    card = ready.card
    message = f"the text has {ready.tokens:,} tokens and the card allows {card.token_budget:,}"
    hint = "it is not injected: shorten it, or raise token_budget"
    return Problem(card.place, "over_budget", message, hint, severity="warning")
