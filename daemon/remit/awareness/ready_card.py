"""A card that was cleaned, scanned and counted, once for each content."""

from collections.abc import Callable
from hashlib import sha256

import msgspec

from remit.awareness.sanitise import Change, sanitise
from remit.awareness.scanner import Finding, scan
from remit.model.card import Card
from remit.model.place import Place

Counter = Callable[[str], int]
"""How many tokens a text has."""


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
    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    """What was taken out of its text, or made harmless."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is suspicious, in words."""
        return tuple(
            f"{one.place}: {one.category} [{one.rule}] {one.excerpt}" for one in self.findings
        )


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
