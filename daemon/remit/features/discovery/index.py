"""The index: every descriptor of one moment, made ready to be searched. Never changed once made."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from remit.features.discovery.embedding import (
    MOST_WORDS,
    Embedder,
    EmbeddingError,
    Flags,
    Floats,
    VectorCache,
    Vocabulary,
    Whole,
    WordEmbedder,
    is_votable,
    np,
    plain_name,
    text_of,
    unit,
)
from remit.features.discovery.graph import Graph, composed_edges
from remit.features.discovery.learning.lessons import NO_LESSONS, Lessons
from remit.model.descriptor import Descriptor
from remit.text.words import stems, words

# BM25F over postings: how well the words of a request fit the fields of each descriptor.
#
# Our own, because nothing we found scores a subset as if the rest did not exist: how rare a word
# is and how long a usual text is are counted in the caller's view alone, so what others may see
# changes nobody's scores.


FIELD_WEIGHTS = (2.0, 1.0, 0.5, 0.5, 0.5, 1.0)
"""Name, description, category with server and tags, parameter names, their texts, examples."""
_FIELDS = len(FIELD_WEIGHTS)
_WEIGHTS = np.array(FIELD_WEIGHTS, np.float32)
_K1 = 1.2
_B = 0.75
_NAME_SHARE = 0.25
"""Of a vector: its name says in few words what the description says among many."""
_REMEMBERED = 500_000
"""Postings of a view that are kept weighed."""


def fields_of(descriptor: Descriptor, learned: Iterable[str] = ()) -> tuple[str, ...]:
    """The searchable texts of a descriptor; never its schema, content or secrets."""
    return (
        f"{descriptor.name} {descriptor.display_name}"
        if _adds(descriptor.display_name, descriptor.name)
        else descriptor.name,
        descriptor.description,
        " ".join((descriptor.category, descriptor.server, *descriptor.tags)),
        " ".join(parameter.name for parameter in descriptor.parameters),
        " ".join(parameter.description for parameter in descriptor.parameters),
        "\n".join((*descriptor.examples, *learned)),
    )


def _adds(display_name: str, name: str) -> bool:
    return not set(words(display_name)) <= set(words(name))


class Analysed:
    """The words of one descriptor: how often each stands in each field."""

    __slots__ = ("counts", "forms", "lengths", "terms")

    def __init__(
        self, fields: Sequence[str], numbers: dict[str, int], forms: dict[str, int]
    ) -> None:
        found: dict[str, list[int]] = {}
        lengths = [0] * _FIELDS
        written: set[str] = set()
        for field, text in enumerate(fields):
            plain = words(text, stemmed=False)
            written.update(plain)
            for word, count in Counter(stems(plain)).items():
                found.setdefault(word, [0] * _FIELDS)[field] += count
                lengths[field] += count
        self.forms = np.array(
            [forms.setdefault(word, len(forms)) for word in written if is_votable(word)], np.int32
        )
        """The words as they are written, each once."""
        self.terms = np.array(
            [numbers.setdefault(word, len(numbers)) for word in found], dtype=np.int64
        )
        self.counts = np.array(list(found.values()), dtype=np.float32).reshape(-1, _FIELDS)
        self.lengths = np.array(lengths, dtype=np.float32)


class LexicalIndex:
    """The postings of many descriptors; never changed once made."""

    def __init__(self, documents: Sequence[Analysed], numbers: dict[str, int]) -> None:
        self.size = len(documents)
        self._numbers = numbers
        self._lengths = (
            np.stack([document.lengths for document in documents])
            if documents
            else np.zeros((0, _FIELDS), np.float32)
        )
        terms = _joined([document.terms for document in documents], np.int64)
        owners = np.repeat(
            np.arange(self.size), [len(document.terms) for document in documents]
        ).astype(np.int64)
        counts = (
            np.concatenate([document.counts for document in documents])
            if documents
            else np.zeros((0, _FIELDS), np.float32)
        )
        order = np.argsort(terms, kind="stable")
        self._documents: Whole = owners[order]
        self._counts: Floats = counts[order]
        self._starts: Whole = np.searchsorted(terms[order], np.arange(len(numbers) + 1))

    def lens(self, allowed: Flags) -> "Lens":
        """This index as somebody sees it who may only see these rows."""
        return Lens(self, allowed)

    def usual_lengths(self, allowed: Flags) -> Floats:
        """How long each field is on average, among these rows."""
        if not allowed.any():
            return np.ones(_FIELDS, np.float32)
        usual = self._lengths[allowed].mean(axis=0)
        return np.where(usual > 0, usual, 1).astype(np.float32)

    def impacts(self, word: str, allowed: Flags, usual: Floats) -> tuple[Whole, Floats]:
        """What one word adds to each allowed row that has it."""
        documents, counts = self._postings(word, allowed)
        if not len(documents):  # most words of a request, in a small catalogue
            return documents, counts[:, 0]
        rarity = _rarity(len(documents), int(np.count_nonzero(allowed)))
        lengths = self._lengths[documents]
        spread = (counts * _WEIGHTS / (1 - _B + _B * lengths / usual)).sum(axis=1)
        return documents, (rarity * (_K1 + 1) * spread / (_K1 + spread)).astype(np.float32)

    def rarity(self, word: str, allowed: Flags) -> float:
        """How much a word tells among the allowed rows; most of all one that none of them has."""
        documents, _counts = self._postings(word, allowed)
        return _rarity(len(documents), int(np.count_nonzero(allowed)))

    def _postings(self, word: str, allowed: Flags) -> tuple[Whole, Floats]:
        number = self._numbers.get(word, -1)
        if not 0 <= number < len(self._starts) - 1:
            return self._documents[:0], self._counts[:0]
        part = slice(int(self._starts[number]), int(self._starts[number + 1]))
        documents = self._documents[part]
        visible = allowed[documents]
        return documents[visible], self._counts[part][visible]


def _rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


class Lens:
    """An index for one view: every word is weighed once, among the allowed rows alone."""

    def __init__(self, index: LexicalIndex, allowed: Flags) -> None:
        self._index = index
        self._allowed = allowed
        self._usual = index.usual_lengths(allowed)
        self._known: dict[str, tuple[Whole, Floats]] = {}
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

    def _impacts(self, word: str) -> tuple[Whole, Floats]:
        known = self._known.get(word)
        if known is None:
            known = self._index.impacts(word, self._allowed, self._usual)
            self._room -= len(known[0]) + 1
            if self._room < 0:
                self._known, self._room = {}, _REMEMBERED
            if len(known[0]):  # words that nobody has are without number
                self._known[word] = known
        return known


def _joined(parts: Sequence[Whole], dtype: type[np.int64]) -> Whole:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


MAX_DESCRIPTORS = 100_000
_MAX_WORDS = 2_000_000
"""Known words after which the vocabulary is begun anew, so that old texts are forgotten."""


class Index:
    """Descriptors with their postings, vectors and edges."""

    def __init__(  # noqa: PLR0913 - what an index is made of
        self,
        descriptors: Sequence[Descriptor],
        lexical: LexicalIndex,
        vectors: Floats | None,
        *,
        graph: Graph,
        vocabulary: Vocabulary | None,
        penalties: Floats,
        version: int,
    ) -> None:
        self.version = version
        self.descriptors = tuple(descriptors)
        self.lexical = lexical
        self.vectors = vectors
        self.graph = graph
        self.vocabulary = vocabulary
        self.penalties = penalties
        self.rows = {descriptor.id: row for row, descriptor in enumerate(self.descriptors)}
        self.names = _names(self.descriptors)
        self._name_words: dict[int, frozenset[str]] = {}

    def __len__(self) -> int:
        return len(self.descriptors)

    def name_shares(self, rows: Sequence[int], asked: Sequence[str]) -> Floats:
        """The share of the words in the name of each row that were asked for."""
        wanted = frozenset(asked)
        found = np.zeros(len(rows), np.float32)
        for at, row in enumerate(rows):
            own = self._name_words.get(row)
            if own is None:
                descriptor = self.descriptors[row]
                own = frozenset(words(f"{descriptor.name} {descriptor.display_name}"))
                self._name_words[row] = own
            found[at] = len(own & wanted) / len(own) if own else 0.0
        return found

    def named(self, text: str) -> tuple[int, ...]:
        """The rows that go by this id, event, name or title, whoever may see them."""
        return self.names.get(text.casefold(), ())

    def is_available(self, row: int) -> bool:
        """Tell whether a row can be used now: it says so, and everything that it needs is here."""
        return self.descriptors[row].available and row not in self.graph.missing


def _names(descriptors: Sequence[Descriptor]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for row, descriptor in enumerate(descriptors):
        own = {descriptor.id, descriptor.name, descriptor.event, descriptor.display_name}
        for name in {name.casefold() for name in own if name}:
            found[name] = (*found.get(name, ()), row)
    return found


class Indexer:
    """Makes indexes, and keeps what the next one can use again.

    A refresh equals a build from nothing: what is kept depends on a descriptor's text alone.
    """

    def __init__(self, embedder: Embedder | None, cache: VectorCache) -> None:
        self.embedder = embedder
        self._cache = cache
        self._numbers: dict[str, int] = {}
        self._forms: dict[str, int] = {}
        self._analysed: dict[tuple[str, ...], Analysed] = {}
        self._version = 0
        self.problem = ""
        """Why the latest index has no vectors, though there is an embedder."""

    def build(self, descriptors: Iterable[Descriptor], lessons: Lessons = NO_LESSONS) -> Index:
        """Make the index of these descriptors, of which no two have one id."""
        ordered = sorted(descriptors, key=lambda descriptor: descriptor.id)[:MAX_DESCRIPTORS]
        self._version += 1
        examples = [lessons.examples.get(descriptor.id, ()) for descriptor in ordered]
        graph = Graph(ordered, composed_edges(lessons.together))
        penalties = [lessons.penalties.get(descriptor.id, 0.0) for descriptor in ordered]
        return Index(
            ordered,
            self._lexical(ordered, examples),
            self._vectors(ordered, examples),
            graph=graph,
            vocabulary=self._vocabulary(),
            penalties=np.array(penalties, np.float32),
            version=self._version,
        )

    def _lexical(
        self, descriptors: Sequence[Descriptor], examples: Sequence[Sequence[str]]
    ) -> LexicalIndex:
        if len(self._numbers) + len(self._forms) > _MAX_WORDS:
            self._numbers, self._forms, self._analysed = {}, {}, {}
        kept: dict[tuple[str, ...], Analysed] = {}
        documents = []
        for descriptor, learned in zip(descriptors, examples, strict=True):
            fields = fields_of(descriptor, learned)
            analysed = self._analysed.get(fields) or Analysed(fields, self._numbers, self._forms)
            kept[fields] = analysed
            documents.append(analysed)
        self._analysed = kept
        return LexicalIndex(documents, self._numbers)

    def _vocabulary(self) -> Vocabulary | None:
        """The words of the descriptors that were analysed last."""
        model: object = self.embedder
        if not isinstance(model, WordEmbedder):
            return None
        counts = np.bincount(
            np.concatenate(
                [np.zeros(0, np.int32), *(one.forms for one in self._analysed.values())]
            ),
            minlength=len(self._forms),
        )
        # In the order of the alphabet, so that it does not matter what was indexed before.
        found = sorted(word for word, number in self._forms.items() if counts[number])
        if len(found) > MOST_WORDS:
            often = sorted(found, key=lambda word: (-counts[self._forms[word]], word))
            found = sorted(often[:MOST_WORDS])
        return Vocabulary(found, model)

    def _vectors(
        self, descriptors: Sequence[Descriptor], examples: Sequence[Sequence[str]]
    ) -> Floats | None:
        """A vector for each: its own text, and the middle of the requests that it served."""
        if self.embedder is None:
            return None
        shown = [(*d.examples, *learned) for d, learned in zip(descriptors, examples, strict=True)]
        texts = [text_of(descriptor) for descriptor in descriptors]
        names = [plain_name(descriptor) for descriptor in descriptors]
        flat = [example for served in shown for example in served]
        try:
            known = self._cache.vectors(self.embedder, [*texts, *names, *flat])
        except EmbeddingError as error:
            self.problem = str(error)
            return None
        self.problem = ""
        size = len(texts)
        rows = unit((1 - _NAME_SHARE) * known[:size] + _NAME_SHARE * known[size : 2 * size])
        at = 2 * size
        for row, served in enumerate(shown):
            if served:
                rows[row] += known[at : at + len(served)].mean(axis=0)
                at += len(served)
        return unit(rows)
