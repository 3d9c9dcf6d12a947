"""BM25F over postings: how well the words of a request fit the fields of each text.

Our own, because nothing we found scores a subset as if the rest did not exist: how rare a word is
and how long a usual text is are counted in the caller's view alone, so what others may see changes
nobody's scores.

An index is made from the one before it: the postings of texts that stayed are moved and not made
again, so that one edit among 50,000 costs a fraction of a second.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from remit.features.discovery.embedding import Flags, Floats, Numbers, is_votable, np
from remit.text.words import stems, words

FIELD_WEIGHTS = (2.0, 1.0, 0.5, 0.5, 0.5, 1.0)
"""Name, description, category with server and tags, parameter names, their texts, examples."""
_FIELDS = len(FIELD_WEIGHTS)
_WEIGHTS = np.array(FIELD_WEIGHTS, np.float32)
_K1 = 1.2
_B = 0.75
_MOST_TIMES = 255
"""A word that stands in a field more often than this counts as if it stood there so often."""
_REMEMBERED = 500_000
"""Postings of a view that are kept weighed."""
_CHUNK = 64
_CHUNKS = 100_000
_MAX_WORDS = 2_000_000
"""Known words after which numbers are given anew, so that old texts are forgotten."""

Fields = Sequence[str]


class Reading:
    """The words of some texts, by number: `terms` one behind the other, `lengths` a line a text."""

    def __init__(self, terms: Numbers, lengths: Numbers, forms: Numbers) -> None:
        self.terms = terms
        self.lengths = lengths
        self.forms = forms
        """Words as they are written, once for each text that has them."""


class Lexicon:
    """Gives words their numbers. Texts are read by what stands between blanks: most was seen."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.forms: dict[str, int] = {}
        self._chunks: dict[str, tuple[list[int], list[int]]] = {}

    @property
    def is_full(self) -> bool:
        """Tell whether it should be begun anew."""
        return len(self.numbers) + len(self.forms) > _MAX_WORDS

    def read(self, texts: Sequence[Fields]) -> Reading:
        """Read texts of six fields each."""
        terms: list[int] = []
        forms: list[int] = []
        ends: list[int] = []
        for fields in texts:
            written: set[int] = set()
            for field in fields:
                for chunk in field.split():
                    stemmed, plain = self._chunks.get(chunk) or self._read_chunk(chunk)
                    terms += stemmed
                    written.update(plain)
                ends.append(len(terms))
            forms += written
        self._chunks = {}  # the next texts will be few
        lengths = np.diff(np.array([0, *ends], np.int64)).astype(np.int64).reshape(-1, _FIELDS)
        return Reading(np.array(terms, np.int64), lengths, np.array(forms, np.int64))

    def _read_chunk(self, chunk: str) -> tuple[list[int], list[int]]:
        plain = words(chunk, stemmed=False)
        found = (
            [self.numbers.setdefault(word, len(self.numbers)) for word in stems(plain)],
            [self.forms.setdefault(one, len(self.forms)) for one in plain if is_votable(one)],
        )
        if len(chunk) <= _CHUNK and len(self._chunks) < _CHUNKS:
            self._chunks[chunk] = found
        return found


class LexicalIndex:
    """The postings of many texts; never changed once made."""

    def __init__(self, lexicon: Lexicon) -> None:
        """Begin with none; `after` makes all others."""
        self.size = 0
        self.lexicon = lexicon
        self.form_counts: Numbers = np.zeros(0, np.int64)
        """By the number of a word as it is written: how many texts have it."""
        self._lengths = np.zeros((0, _FIELDS), np.float32)
        self._documents: Numbers = np.zeros(0, np.int32)
        self._counts = np.zeros((0, _FIELDS), np.uint8)
        self._starts: Numbers = np.zeros(1, np.int64)

    def after(
        self, came_from: Numbers, fresh: Sequence[Fields], gone: Sequence[Fields]
    ) -> "LexicalIndex":
        """The index that follows this one.

        Args:
            came_from: by row of the new index, its row in this one, in rising order; -1: new.
            fresh: the texts of the new rows.
            gone: the texts of this index that are not in the new one.
        """
        made = LexicalIndex(self.lexicon)
        made.size = len(came_from)
        is_new = came_from < 0
        reading = self.lexicon.read(fresh)

        terms, documents, counts = _postings(reading, np.flatnonzero(is_new), made.size)
        made._lengths = np.empty((made.size, _FIELDS), np.float32)
        made._lengths[is_new] = reading.lengths
        made._lengths[~is_new] = self._lengths[came_from[~is_new]]
        old_terms, old_documents, old_counts = self._moved(came_from, made.size)
        at = np.searchsorted(old_terms * made.size + old_documents, terms * made.size + documents)
        made._documents = np.insert(old_documents, at, documents).astype(np.int32)
        made._counts = np.insert(old_counts, at, counts, axis=0)
        per_term = np.bincount(old_terms, minlength=len(self.lexicon.numbers))
        per_term += np.bincount(terms, minlength=len(per_term))
        made._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(per_term)])
        made.form_counts = self._form_counts(reading, gone)
        return made

    def _moved(self, came_from: Numbers, size: int) -> tuple[Numbers, Numbers, Numbers]:
        """The postings that stay, by the rows of an index of this size."""
        if not self.size or not size:
            return np.zeros(0, np.int64), self._documents[:0], self._counts[:0]
        places: Numbers = np.full(self.size, -1, np.int32)
        kept = np.flatnonzero(came_from >= 0)
        places[came_from[kept]] = kept
        documents = places[self._documents]
        terms: Numbers = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        if len(kept) == self.size:
            return terms, documents, self._counts
        stay = documents >= 0
        return terms[stay], documents[stay], self._counts[stay]

    def _form_counts(self, reading: Reading, gone: Sequence[Fields]) -> Numbers:
        left = self.lexicon.read(gone)
        size = len(self.lexicon.forms)
        counts = np.bincount(reading.forms, minlength=size) - np.bincount(
            left.forms, minlength=size
        )
        counts[: len(self.form_counts)] += self.form_counts
        return counts

    def usual_lengths(self, allowed: Flags) -> Floats:
        """How long each field is on average, among these rows."""
        if not allowed.any():
            return np.ones(_FIELDS, np.float32)
        usual = self._lengths[allowed].mean(axis=0)
        return np.where(usual > 0, usual, 1).astype(np.float32)

    def impacts(self, word: str, allowed: Flags, usual: Floats) -> tuple[Numbers, Floats]:
        """What one word adds to each allowed row that has it."""
        documents, counts = self._postings(word, allowed)
        if not len(documents):  # most words of a request, in a small catalogue
            return documents, counts[:, 0].astype(np.float32)
        rarity = _rarity(len(documents), int(np.count_nonzero(allowed)))
        lengths = self._lengths[documents]
        spread = (counts * _WEIGHTS / (1 - _B + _B * lengths / usual)).sum(axis=1)
        return documents, (rarity * (_K1 + 1) * spread / (_K1 + spread)).astype(np.float32)

    def rarity(self, word: str, allowed: Flags) -> float:
        """How much a word tells among the allowed rows; most of all one that none of them has."""
        documents, _counts = self._postings(word, allowed)
        return _rarity(len(documents), int(np.count_nonzero(allowed)))

    def _postings(self, word: str, allowed: Flags) -> tuple[Numbers, Numbers]:
        number = self.lexicon.numbers.get(word, -1)
        if not 0 <= number < len(self._starts) - 1:
            return self._documents[:0], self._counts[:0]
        part = slice(int(self._starts[number]), int(self._starts[number + 1]))
        documents = self._documents[part]
        visible = allowed[documents]
        return documents[visible], self._counts[part][visible]


def _postings(reading: Reading, rows: Numbers, size: int) -> tuple[Numbers, Numbers, Numbers]:
    """Term, row and counts by field of each posting, in order.

    Everything about a word in a field of a row is one number, so that one sort does it all.
    """
    places = (rows[:, None] * _FIELDS + np.arange(_FIELDS)).ravel()
    width = max(1, size) * _FIELDS
    keys = np.sort(reading.terms * width + np.repeat(places, reading.lengths.ravel()))
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    times = np.diff(first, append=len(keys))
    pairs, fields = np.divmod(keys[first], _FIELDS)
    begins = np.diff(pairs, prepend=-1) != 0
    counts = np.zeros((int(np.count_nonzero(begins)), _FIELDS), np.uint8)
    counts[np.cumsum(begins) - 1, fields] = np.minimum(times, _MOST_TIMES)
    terms, documents = np.divmod(pairs[begins], max(1, size))
    return terms, documents, counts


def _rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


class Lens:
    """An index for one view: every word is weighed once, among the allowed rows alone."""

    def __init__(self, index: LexicalIndex, allowed: Flags) -> None:
        self._index = index
        self._allowed = allowed
        self._usual = index.usual_lengths(allowed)
        self._known: dict[str, tuple[Numbers, Floats]] = {}
        self._room = _REMEMBERED

    def score(self, request: Sequence[str]) -> Floats:
        """How well each allowed row fits the words of a request; 0: it has none of them."""
        scores = np.zeros(self._index.size, np.float32)
        for word, times in Counter(request).items():
            documents, impacts = self._impacts(word)
            scores[documents] += impacts if times == 1 else impacts * (1 + math.log(times))
        return scores

    def knows(self, word: str) -> bool:
        """Tell whether a word stands in an allowed row."""
        return bool(len(self._impacts(word)[0]))

    def vote(self, scores: Floats, near: Iterable[tuple[str, float]], most: int) -> None:
        """Add what the first `most` of these words bring that stand in an allowed row at all."""
        for word, cosine in near:
            documents, impacts = self._impacts(word)
            if len(documents):
                scores[documents] += impacts * (cosine * cosine)
                most -= 1
                if not most:
                    return

    def ceiling(self, request: Sequence[str]) -> float:
        """The most that a row could score: every word in it, as often and as alone as can be."""
        return sum(
            self._index.rarity(word, self._allowed) * (_K1 + 1) * (1 + math.log(times))
            for word, times in Counter(request).items()
        )

    def _impacts(self, word: str) -> tuple[Numbers, Floats]:
        known = self._known.get(word)
        if known is None:
            known = self._index.impacts(word, self._allowed, self._usual)
            self._room -= len(known[0]) + 1
            if self._room < 0:
                self._known, self._room = {}, _REMEMBERED
            if len(known[0]):  # words that nobody has are without number
                self._known[word] = known
        return known
