"""The index: every descriptor of one moment, made ready to be searched. Never changed once made."""

from collections.abc import Iterable, Sequence

from remit.discovery.arrays import Floats, np
from remit.discovery.embedding import Embedder, EmbeddingError, text_of, unit
from remit.discovery.graph import Graph, composed_edges
from remit.discovery.lessons import NO_LESSONS, Lessons
from remit.discovery.lexical import Analysed, LexicalIndex, fields_of
from remit.discovery.vectors import VectorCache
from remit.model.descriptor import Descriptor

MAX_DESCRIPTORS = 100_000
_MAX_WORDS = 2_000_000
"""Known words after which the vocabulary is begun anew, so that old texts are forgotten."""


class Index:
    """Descriptors with their postings, vectors and edges."""

    def __init__(
        self,
        descriptors: Sequence[Descriptor],
        lexical: LexicalIndex,
        vectors: Floats | None,
        graph: Graph,
        penalties: Floats,
        *,
        version: int,
    ) -> None:
        self.version = version
        self.descriptors = tuple(descriptors)
        self.lexical = lexical
        self.vectors = vectors
        self.graph = graph
        self.penalties = penalties
        self.rows = {descriptor.id: row for row, descriptor in enumerate(self.descriptors)}
        self.names = _names(self.descriptors)

    def __len__(self) -> int:
        return len(self.descriptors)

    def named(self, text: str) -> tuple[int, ...]:
        """The rows that go by this id, event, name or title, whoever may see them."""
        return self.names.get(text.casefold(), ())


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
            graph,
            np.array(penalties, np.float32),
            version=self._version,
        )

    def _lexical(
        self, descriptors: Sequence[Descriptor], examples: Sequence[Sequence[str]]
    ) -> LexicalIndex:
        if len(self._numbers) > _MAX_WORDS:
            self._numbers, self._analysed = {}, {}
        kept: dict[tuple[str, ...], Analysed] = {}
        documents = []
        for descriptor, learned in zip(descriptors, examples, strict=True):
            fields = fields_of(descriptor, learned)
            analysed = self._analysed.get(fields) or Analysed(fields, self._numbers)
            kept[fields] = analysed
            documents.append(analysed)
        self._analysed = kept
        return LexicalIndex(documents, self._numbers)

    def _vectors(
        self, descriptors: Sequence[Descriptor], examples: Sequence[Sequence[str]]
    ) -> Floats | None:
        """A vector for each: its own text, and the middle of the requests that it served."""
        if self.embedder is None:
            return None
        shown = [(*d.examples, *learned) for d, learned in zip(descriptors, examples, strict=True)]
        texts = [text_of(descriptor) for descriptor in descriptors]
        flat = [example for served in shown for example in served]
        try:
            known = self._cache.vectors(self.embedder, [*texts, *flat])
        except EmbeddingError as error:
            self.problem = str(error)
            return None
        self.problem = ""
        rows, at = known[: len(texts)].copy(), len(texts)
        for row, served in enumerate(shown):
            if served:
                rows[row] += known[at : at + len(served)].mean(axis=0)
                at += len(served)
        return unit(rows)
