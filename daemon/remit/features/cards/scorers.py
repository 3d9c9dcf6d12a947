"""How relevant a card is to the last messages, 0 to 1, and which sessions are given cards at all.

A scorer is chosen by its name. Beside ours, packages offer others by the entry point
`remit.card_scorers`; one that cannot be loaded is reported and left out. A share of the sessions of
each type takes part: a session falls on the same side as long as the share stays, and raising the
share takes nobody out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from remit.config.settings.table import Settings
from remit.errors import Place, Problem
from remit.features.cards.card import MAX_PRIORITY, Card
from remit.features.cards.words import KeywordMatch, Score, Window, WordsScorer
from remit.kernel.feature import entry_points
from remit.text.counting import make_counter

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "remit.card_scorers"
DEFAULT = "words"
Rank = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""From messages and texts to the relevance of each text, 0 to 1."""
EVERY_TYPE = "*"


@runtime_checkable
class CardScorer(Protocol):
    """What a scorer can do; it must not keep anything of a conversation."""

    @property
    def name(self) -> str:
        """What it is called in the configuration."""

    def score(self, card: Card, window: Window) -> Score:
        """How relevant a card is."""


@runtime_checkable
class BatchScorer(Protocol):
    """A scorer that rather sees all cards at once."""

    def score_all(self, cards: Sequence[Card], window: Window) -> Sequence[Score]:
        """How relevant each card is, in their order."""


class KeywordDensity:
    """The documented formula, to the letter: 0.7 * matched / total + 0.3 * min(found / 100, 1).

    Keywords are looked for as parts of words. Without messages it is priority / 100.
    """

    name = "keyword_density"

    def score(self, card: Card, window: Window) -> Score:
        """How relevant a card is."""
        if not window.messages:
            return without_messages(card)
        text = window.lowered
        found = {word: text.count(word.lower()) for word in card.triggers.keywords}
        matched = [
            KeywordMatch(keyword=word, count=count) for word, count in found.items() if count
        ]
        if not matched:
            return Score(value=0.0)
        density = min(sum(found.values()) / 100, 1.0)
        value = 0.7 * len(matched) / len(card.triggers.keywords) + 0.3 * density
        return Score(value=value, matches=tuple(matched))


class Semantic:
    """The ranker of discovery, or any other function from texts to relevance."""

    name = "semantic"

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def score(self, card: Card, window: Window) -> Score:
        """How relevant a card is."""
        return self.score_all([card], window)[0]

    def score_all(self, cards: Sequence[Card], window: Window) -> Sequence[Score]:
        """How relevant each card is."""
        if not window.messages:
            return [without_messages(card) for card in cards]
        values = self._rank(window.messages, [ranked_text(card) for card in cards])
        return [Score(value=float(value)) for value in values]


def ranked_text(card: Card) -> str:
    """What stands for a card in a ranking: never its text, which may be about everything."""
    return f"{card.name}. {card.description}. {', '.join(card.triggers.keywords)}"


def without_messages(card: Card) -> Score:
    """Before anybody has said anything, what the author thinks of it counts."""
    return Score(value=card.priority / MAX_PRIORITY)


class Scorers(msgspec.Struct, frozen=True):
    """What can be chosen from, and what could not be loaded."""

    by_name: Mapping[str, CardScorer]
    problems: tuple[Problem, ...] = ()


def load_scorers(
    rank: Rank | None = None, offered: "Iterable[EntryPoint] | None" = None
) -> Scorers:
    """Our scorers and those of installed packages; `semantic` only with a function that ranks."""
    found: dict[str, CardScorer] = {one.name: one for one in (WordsScorer(), KeywordDensity())}
    if rank is not None:
        found[Semantic.name] = Semantic(rank)
    problems: list[Problem] = []
    points = _installed() if offered is None else offered
    for point in sorted(points, key=lambda one: (one.name, one.value)):
        try:
            _take(point, found)
        except Exception as error:  # what a package raises must not stop ours
            message = f"the scorer {point.name!r} of {point.value} is left out: {error}"
            hint = "repair the package, or uninstall it"
            problem = Problem(Place(point.value), "bad_scorer", message, hint, severity="warning")
            problems.append(problem)
    return Scorers(found, tuple(problems))


def _installed() -> "list[EntryPoint]":
    if not (found := entry_points(GROUP)):
        return []
    from importlib.metadata import EntryPoint  # noqa: PLC0415 - 2 MB that few daemons need

    return [EntryPoint(name, value, GROUP) for name, value in found]


def _take(point: "EntryPoint", found: dict[str, CardScorer]) -> None:
    if point.name in found or point.name == Semantic.name:
        raise ValueError("the name is taken")
    loaded = point.load()
    scorer = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(scorer, CardScorer):
        raise TypeError("it has no name and score(card, window)")
    found[point.name] = scorer


def checked(score: object) -> Score:
    """A score as it came from a scorer, if it is one.

    Raises:
        ValueError: it is none, or its value is not from 0 to 1.
    """
    if not isinstance(score, Score) or not 0 <= score.value <= 1:  # nor is NaN
        raise ValueError(f"{score!r} is not a score from 0 to 1")
    return score


def assigned(session: str, first: str, second: str, share: float = 0.5) -> str:
    """Which of two scorers a session gets: always the same, the second for about this share."""
    text = f"{first}\0{second}\0{session}".encode("utf-8", "surrogatepass")
    drawn = int.from_bytes(blake2b(text, digest_size=8).digest()) / 2**64
    return second if drawn < share else first


def configured_scorers(settings: Settings) -> Scorers:
    """Every scorer that can be chosen; the ranker of discovery is made when it is first asked."""
    ranker: Rank | None = None

    def rank(messages: Sequence[str], texts: Sequence[str]) -> Sequence[float]:
        nonlocal ranker
        if ranker is None:
            ranker = _make_ranker(settings)
        return ranker(messages, texts)

    return load_scorers(rank)


def token_count(settings: Settings) -> Callable[[str], int]:
    """The configured counter, loaded when something is first counted."""
    counting: Callable[[str], int] | None = None

    def count(text: str) -> int:
        nonlocal counting
        if counting is None:
            counting = make_counter(settings.token_counter).count
        return counting(text)

    return count


def _make_ranker(settings: Settings) -> Rank:
    from remit.features.discovery.engine import make_text_ranker  # noqa: PLC0415 - numpy and the vectors

    return make_text_ranker(settings)


def session_key(principal: str, session: str) -> str:
    """What stands for a session: nobody reads its name out of it, and two callers share none."""
    return blake2b(f"{principal}\0{session}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def is_chosen(key: str, share: float) -> bool:
    """Tell whether a session belongs to a share of all; the larger share holds the smaller."""
    return int(key, 16) < share * 2**64


def share_of(shares: Mapping[str, float], session_type: str) -> float:
    """The share of sessions of a type; once types are listed, others get none unless `*` says."""
    if not shares:
        return 1.0
    return shares.get(session_type, shares.get(EVERY_TYPE, 0.0))
