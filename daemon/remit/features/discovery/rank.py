"""The ranking of one request: words and vectors fused, then the graph.

Both scores are brought to 0..1 over the view before they are added, half and half; a request of
many steps counts half as a whole and half by its best step. A request in which neither a known word
nor a readable one stands finds nothing.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

import msgspec

from remit.features.discovery.embedding import (
    Embedder,
    EmbeddingError,
    Flags,
    Floats,
    np,
    products,
    shares,
    spread,
)
from remit.features.discovery.graph import BOOST
from remit.features.discovery.index import Indexer
from remit.features.discovery.view import View
from remit.model.descriptor import Descriptor
from remit.text.words import words

POOL = 10
"""How many of the best the graph looks at."""
_INSIDE = re.compile(r"[A-Za-z0-9][_:.-][A-Za-z0-9]|[a-z][A-Z]")
"""What an identifier has in it and a word has not."""
_MAX_IDENTIFIERS = 16
_STRANGERS, _NEAR = 0.05, 0.15
"""Cosines: of texts that have nothing to do with each other, and below nearly every right pair."""
_REQUESTS = 4_096
"""Texts whose vectors are remembered."""
_ALMOST = 0.99
_VIEWS = 32
"""Sets of texts whose index is kept: callers with the same capabilities share one."""
_PENALTY = 0.3
"""What a descriptor that always failed loses."""
MAX_CLAUSES = 6
MAX_REQUEST = 4_000
"""Characters of a request that are looked at; what follows is mostly pasted material."""

_BORDER = re.compile(
    r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+"  # noqa: RUF001 - the stops of other scripts
    r"|,?\s+(?:and then|then|and also|also|and|und dann|y luego|puis)\s+",
    re.IGNORECASE,
)
_OPENING = re.compile(r"(?:and |then |also |finally |first |next |after that |,)+", re.IGNORECASE)
_MEANT = 2
"""A clause of fewer words than these says too little to search with."""


class Hit(msgspec.Struct, frozen=True):
    """A row that was found, or that came along with one."""

    row: int
    relevance: float
    pulled_in_by: int | None = None


class Ranker:
    """Scores requests, remembering the vectors of the latest ones."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._known: dict[str, Floats] = {}
        self._without: set[str] = set()
        """Requests whose vectors could not be had beforehand: they are not waited for again."""

    def scores(self, view: View, request: str, among: Flags) -> Floats:
        """How relevant each row is, from 0 to 1; rows outside of `among` are 0."""
        steps = clauses(request)
        request = shortened(request)
        found = self._relevance(view, request, steps, among)
        index = view.index
        found *= 1 - _PENALTY * index.penalties
        named = [row for row in _named(view, request) if among[row]]
        if named:
            np.minimum(found, _ALMOST, out=found)
            found[named] = 1.0
        return np.where(among, found, 0).astype(np.float32)

    def _relevance(self, view: View, request: str, steps: Sequence[str], among: Flags) -> Floats:
        asked = words(request)
        whole = view.words.score(asked)
        known = bool(whole[among].any()) if among.any() else False
        if not known and not self._can_read(asked):
            return np.zeros(len(view.index), np.float32)
        similar = self._similar(view, (request, *steps))
        total = _fused(whole, similar[0], among)
        if not steps:
            return total
        best = np.zeros_like(total)
        for step, near in zip(steps, similar[1:], strict=True):
            found = _fused(view.words.score(words(step)), near, among)
            np.maximum(best, found, out=best)
        return ((total + best) / 2).astype(np.float32)

    def embed(self, request: str) -> None:
        """Get the vectors of a request beforehand, in whatever thread."""
        texts = (shortened(request), *clauses(request))
        if self._vectors(texts) is not None:
            self._without.discard(texts[0])
            return
        if len(self._without) >= _REQUESTS:
            self._without = set()
        self._without.add(texts[0])

    def lacks(self, request: str) -> bool:
        """Tell whether the vectors of a request could not be had: its answer is not for keeping."""
        return shortened(request) in self._without

    def _similar(self, view: View, texts: tuple[str, ...]) -> Sequence[Floats | None]:
        """How near each row is to each text; all texts at once, so the vectors are read once."""
        vectors = view.index.vectors
        wanted = vectors is not None and texts[0] not in self._without
        asked = self._vectors(texts) if wanted else None
        if vectors is None or asked is None:
            return [None] * len(texts)
        return list(products(asked, vectors))

    def _vectors(self, texts: tuple[str, ...]) -> Floats | None:
        """One row a text; None: there are none to be had now."""
        if self._embedder is None:
            return None
        found = {text: self._known.get(text) for text in texts}
        fresh = [text for text, known in found.items() if known is None]
        if fresh:
            try:
                made = dict(zip(fresh, self._embedder.embed(fresh), strict=True))
            except EmbeddingError:
                return None
            if len(self._known) + len(fresh) > _REQUESTS:
                self._known = {}  # not cleared: another thread may be reading it
            self._known.update(made)
            found |= made
        return np.stack([row for text in texts if (row := found[text]) is not None])

    def _can_read(self, asked: Sequence[str]) -> bool:
        return self._embedder is not None and self._embedder.reads(asked)


def _fused(lexical: Floats, similar: Floats | None, among: Flags) -> Floats:
    by_words = shares(lexical, among)
    if similar is None:
        return by_words
    by_meaning = spread(similar, among) * _trust(similar, among)
    return ((by_words + by_meaning) / 2).astype(np.float32)


def _trust(similar: Floats, among: Flags) -> float:
    """How much the nearest vector says at all: it must be nearer than any two texts are."""
    nearest = float(similar[among].max(initial=0.0))
    return min(1.0, max(0.0, (nearest - _STRANGERS) / (_NEAR - _STRANGERS)))


def _named(view: View, request: str) -> list[int]:
    """Rows that the request names in full, alone or as an identifier among other words."""
    parts = (part.strip("\"'`()[]{}<>,;!?.") for part in request.split())
    identifiers = [part for part in parts if _INSIDE.search(part)]
    texts = [request, *identifiers[:_MAX_IDENTIFIERS]]
    return list(dict.fromkeys(row for text in texts for row in view.named(text)))


def best(scores: Floats, view: View, count: int, least: float) -> list[int]:
    """The best rows in order; equal ones by id, which is the order of the index."""
    rows = np.flatnonzero(scores >= max(least, 1e-6))
    order = np.lexsort((rows, -scores[rows]))
    return [int(row) for row in rows[order[:count]]]


def reranked(scores: Floats, view: View, rows: Sequence[int]) -> list[Hit]:
    """The rows again, after those that belong together lifted each other; never above 1."""
    boosts = view.index.graph.boosts(rows[:POOL], view.group_size)
    hits = [
        Hit(row, min(1.0, float(scores[row]) + (boosts.get(row, 0.0) if scores[row] < 1 else 0.0)))
        for row in rows
    ]
    return sorted(hits, key=lambda hit: (-hit.relevance, hit.row))


def with_company(hits: Sequence[Hit], view: View, among: Flags, limit: int) -> list[Hit]:
    """The hits, each followed by what it needs or is used with and was not found by itself."""
    shown = {hit.row for hit in hits}
    found: list[Hit] = []
    left = limit
    for hit in hits:
        found.append(hit)
        for row, weight in view.index.graph.neighbours(hit.row):
            if left and row not in shown and among[row]:
                shown.add(row)
                left -= 1
                found.append(Hit(row, hit.relevance * BOOST * weight, pulled_in_by=hit.row))
    return found


class TextRanker:
    """Ranks texts against messages; may be called from several threads."""

    def __init__(self, make_indexer: Callable[[], Indexer]) -> None:
        self._make_indexer = make_indexer
        self._indexer: Indexer | None = None
        self._ranker: Ranker | None = None
        self._views: OrderedDict[tuple[str, ...], View] = OrderedDict()
        self._lock = Lock()

    def __call__(self, messages: Sequence[str], texts: Sequence[str]) -> Sequence[float]:
        """The relevance of each text, from 0 to 1."""
        if not texts:
            return []
        with self._lock:
            view, ranker = self._view(tuple(texts))
            scores = ranker.scores(view, "\n".join(messages), view.allowed)
        return [min(1.0, max(0.0, float(score))) for score in scores]

    def _view(self, texts: tuple[str, ...]) -> tuple[View, Ranker]:
        if self._indexer is None or self._ranker is None:
            self._indexer = self._make_indexer()
            self._ranker = Ranker(self._indexer.embedder)
        found = self._views.get(texts)
        if found is None:
            # The index is ordered by id, and no request can name an id with a NUL in it.
            described = [
                Descriptor(id=f"\0{at:06}", kind="skill", name="", description=text)
                for at, text in enumerate(texts)
            ]
            index = self._indexer.build(described)
            found = self._views[texts] = View(index, np.ones(len(index), np.bool_))
            if len(self._views) > _VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(texts)
        return found, self._ranker


def shortened(request: str) -> str:
    """The request as far as it is looked at, on one level of blanks."""
    return " ".join(request[: MAX_REQUEST * 2].split())[:MAX_REQUEST]


def clauses(request: str) -> list[str]:
    """The steps of a request; nothing when it has only one."""
    parts = [_bare(part) for part in _BORDER.split(request[:MAX_REQUEST]) if part]
    parts = [part for part in parts if len(words(part)) >= _MEANT]
    return parts[:MAX_CLAUSES] if len(parts) > 1 else []


def _bare(part: str) -> str:
    part = part.strip()
    opening = _OPENING.match(part)
    return part[opening.end() :].strip() if opening else part
