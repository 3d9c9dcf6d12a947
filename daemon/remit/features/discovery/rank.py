"""The ranking of one request: words and vectors fused, then the graph.

Both scores are brought to 0..1 over the view before they are added, half and half; a request of
many steps counts half as a whole and half by its best step. A request in which neither a known word
nor a readable one stands finds nothing.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import accumulate
from threading import Lock

import msgspec

from remit.features.discovery.embedding import (
    Embedder,
    EmbeddingError,
    Flags,
    Floats,
    PartedEmbedder,
    np,
    products,
    shares,
    spread,
)
from remit.features.discovery.graph import BOOST
from remit.features.discovery.index import Indexer, asks_for_destruction
from remit.features.discovery.relevance import Calibration, RankSignals, request_signals
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
ALMOST = 0.99
_VIEWS = 32
"""Sets of texts whose index is kept: callers with the same capabilities share one."""
_LIKELY = 0.25
"""What the probability of a row adds to its score, at most."""
_VOTES = 5
"""Words of the catalogue that each word of a request votes for."""
PENALTY = 0.3
"""What a descriptor that always failed loses."""
_DESTRUCTIVE = 0.2
"""What a destructive tool loses where the request does not ask for destruction."""
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
        model: object = embedder
        self._parts: Sequence[slice] = (slice(None),)
        self._words_share = 0.5
        if isinstance(model, PartedEmbedder):
            self._parts, self._words_share = model.parts, model.words_share
        self._known: dict[str, Floats] = {}
        self._without: set[str] = set()
        """Requests whose vectors could not be had beforehand: they are not waited for again."""

    def rank(self, view: View, request: str, among: Flags) -> "Ranking":
        """Score every row of `among` for a request."""
        texts = (shortened(request), *clauses(request))
        named = [row for row in _named(view, texts[0]) if among[row]]
        asked = [_without_numbers(text) for text in texts]
        lexical = [view.words.score(line) for line in asked]
        known = bool(lexical[0][among].any()) if among.any() else False
        if known or self._can_read(asked[0]):
            similar = self._similar(view, texts)
            possible = [view.words.ceiling(line) for line in asked]
            voted = [_voted(view, text, line) for text, line in zip(texts, lexical, strict=True)]
            fused = _combined(voted, similar, among, self._words_share)
            fused *= 1 - PENALTY * view.index.penalties
            if not asks_for_destruction(texts[0]):
                fused *= 1 - _DESTRUCTIVE * view.index.destructive
            cosines = [_cosine(parts) for parts in similar]
            evidence = Evidence(asked[0], lexical, cosines, possible)
        else:
            fused = np.zeros(len(view.index), np.float32)
            evidence = Evidence(asked[0], [fused], [None], (1.0,))
        if named:
            np.minimum(fused, ALMOST, out=fused)
            fused[named] = 1.0
        return Ranking(view, np.where(among, fused, 0).astype(np.float32), evidence, named)

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

    def _similar(self, view: View, texts: tuple[str, ...]) -> Sequence[Sequence[Floats]]:
        """How near each row is to each text, by each part of the vectors; nothing: there are none.

        All texts at once, so that the vectors are read once.
        """
        vectors = view.index.vectors
        wanted = vectors is not None and texts[0] not in self._without
        asked = self._vectors(texts) if wanted else None
        if vectors is None or asked is None:
            return [()] * len(texts)
        found = [products(asked[:, part], vectors[:, part]) for part in self._parts]
        return [[lines[at] for lines in found] for at in range(len(texts))]

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


class Evidence(msgspec.Struct, frozen=True):
    """What the scores of a request were made from: for all of it first, then for each step."""

    asked: Sequence[str]
    """The words of the request."""
    lexical: Sequence[Floats]
    """The BM25F scores."""
    similar: Sequence[Floats | None]
    """The cosines; None: there are no vectors now."""
    possible: Sequence[float]
    """The most that a row could score."""


class Ranking:
    """The scores of one request, and the evidence behind them."""

    def __init__(self, view: View, fused: Floats, evidence: Evidence, named: Sequence[int]) -> None:
        """Keep the scores.

        Args:
            view: what was ranked.
            fused: from 0 to 1, by words and vectors; it compares the rows with each other.
            evidence: what that was made from.
            named: the rows that the request names in full.
        """
        self.fused = fused
        self.named = frozenset(named)
        self._view = view
        self._evidence = evidence

    @property
    def has_vectors(self) -> bool:
        """Tell whether vectors had a say."""
        return self._evidence.similar[0] is not None

    def signals(self, rows: Sequence[int]) -> RankSignals:
        """What speaks for these rows, in absolute terms."""
        chosen, told = list(rows), self._evidence
        shares = [
            line[chosen] / max(possible, 1e-6)
            for line, possible in zip(told.lexical, told.possible, strict=True)
        ]
        cosines = [line[chosen] for line in told.similar if line is not None]
        cosines = cosines or [np.zeros(len(chosen), np.float32)]
        named = self._view.index.name_shares(chosen, told.asked)
        lines = (
            self.fused[chosen],
            shares[0],
            np.max(shares, axis=0),
            cosines[0],
            np.max(cosines, axis=0),
            named,
            np.log1p(told.lexical[0][chosen]),
            named * np.max(shares, axis=0),
            np.max(cosines, axis=0) * np.max(shares, axis=0),
        )
        steps, asked = len(told.lexical) - 1, set(told.asked)
        known = sum(map(self._view.words.knows, asked)) / max(1, len(asked))
        about = request_signals(len(asked), steps, self._view.total, known)
        return RankSignals(np.stack(lines, axis=1).astype(np.float32), about)

    def boosts(self, rows: Sequence[int], most: float) -> dict[int, float]:
        """What the best of these rows gain from each other."""
        return self._view.index.graph.boosts(rows[:POOL], self._view.group_size, most)

    def relevance(self, rows: Sequence[int], calibration: Calibration) -> tuple[list[float], float]:
        """How likely each row serves the request, and how likely anything does.

        Whatever the request names in full is meant.
        """
        found, fits = calibration.relevance(self.signals(rows))
        if self.named:
            fits = 1.0
        return [
            1.0 if row in self.named else float(each) for row, each in zip(rows, found, strict=True)
        ], fits


def _without_numbers(request: str) -> list[str]:
    """The words of a request; its numbers and dates are arguments, and find nothing."""
    return [word for word in words(request) if not word.isdigit()]


def _voted(view: View, request: str, scores: Floats) -> Floats:
    """The scores by words, and what words that mean nearly the same bring."""
    vocabulary = view.index.vocabulary
    if vocabulary is None:
        return scores
    found = scores.copy()
    asked = list(dict.fromkeys(words(request, stemmed=False)))
    vocabulary.look_up(asked)
    for word in asked:
        view.words.vote(found, vocabulary.near(word), _VOTES)
    return found


def _cosine(parts: Sequence[Floats]) -> Floats | None:
    """The cosine of whole vectors, from what their parts add to it; None: there are none."""
    if not parts:
        return None
    found: Floats = parts[0] if len(parts) == 1 else np.sum(parts, axis=0)
    return found


def _combined(
    lexical: Sequence[Floats], similar: Sequence[Sequence[Floats]], among: Flags, share: float
) -> Floats:
    """The fused score: half of it the whole request, half the step that fits best."""
    pairs = zip(lexical, similar, strict=True)
    whole, *steps = (_fused(line, near, among, share) for line, near in pairs)
    if not steps:
        return whole
    found: Floats = ((whole + np.max(steps, axis=0)) / 2).astype(np.float32)
    return found


def _fused(lexical: Floats, similar: Sequence[Floats], among: Flags, share: float) -> Floats:
    """A share by words; the rest by each part of the vectors alike, on a scale of its own."""
    by_words = shares(lexical, among)
    cosine = _cosine(similar)
    if cosine is None:
        return by_words
    by_meaning: Floats = np.mean([spread(part, among) for part in similar], axis=0)
    by_meaning *= _trust(cosine, among)
    found: Floats = (share * by_words + (1 - share) * by_meaning).astype(np.float32)
    return found


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


def ordered(
    ranking: Ranking, rows: Sequence[int], likely: Sequence[float], *, lift: float = BOOST
) -> list[Hit]:
    """The rows as hits, in the order of their scores; what is likelier gets a little more.

    Rows that belong together lift each other by at most `lift`: by a part of the score, and by a
    share of the doubt that is left, so that what is unlikely stays so. No hit is told to be
    likelier than one that stands before it.
    """
    boosts = ranking.boosts(rows, lift) if lift else {}
    scores, hits = {}, []
    for row, chance in zip(rows, likely, strict=True):
        boost = boosts.get(row, 0.0)
        scores[row] = float(ranking.fused[row]) + _LIKELY * chance + boost
        hits.append(Hit(row, chance * (1 + boost * (1 - chance))))
    hits.sort(key=lambda hit: (-scores[hit.row], hit.row))
    least = accumulate((hit.relevance for hit in hits), min)
    return [Hit(hit.row, relevance) for hit, relevance in zip(hits, least, strict=True)]


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
            scores = ranker.rank(view, "\n".join(messages), view.allowed).fused
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
