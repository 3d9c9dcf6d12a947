"""Cards for tests: written to folders, or made ready without a file."""

from pathlib import Path

from remit.features.cards.card import Card, Triggers
from remit.features.cards.ready_card import ReadyCard


def write_card(  # noqa: PLR0913 - one for each key that tests turn
    folder: Path,
    id_: str,
    text: str = "What to know.",
    *,
    keywords: str = "[deploy]",
    file: str = "",
    name: str = "A card",
    extra: str = "",
) -> Path:
    """Put a card into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (file or f"{id_}.md")
    path.write_text(
        f"---\nid: {id_}\nname: {name}\ndescription: About {id_}\n"
        f"triggers: {{keywords: {keywords}}}\n{extra}---\n{text}\n",
        encoding="utf-8",
    )
    return path


def ready(  # noqa: PLR0913 - one for each thing that tests turn
    id_: str = "a",
    *,
    tokens: int = 10,
    keywords: tuple[str, ...] = ("deploy",),
    priority: int = 50,
    capabilities: tuple[str, ...] = (),
    token_budget: int = 2_000,
    triggers: Triggers | None = None,
    quarantined: bool = False,
) -> ReadyCard:
    """A card as a library gives it."""
    card = Card(
        id=id_,
        name=id_,
        description="",
        text=f"text of {id_}",
        triggers=triggers or Triggers(keywords=keywords),
        priority=priority,
        capabilities=capabilities,
        token_budget=token_budget,
    )
    return ReadyCard(card=card, content_hash="", tokens=tokens, is_quarantined=quarantined)
