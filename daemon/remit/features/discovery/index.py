"""The index: every descriptor of one moment, made ready to be searched. Never changed once made."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

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
    np,
    plain_name,
    text_of,
    unit,
)
from remit.features.discovery.graph import Graph, composed_edges
from remit.features.discovery.learning.lessons import NO_LESSONS, Lessons
from remit.features.discovery.lexical import LexicalIndex, Lexicon
from remit.model.descriptor import Descriptor
from remit.text.words import stem, words

_NAME_SHARE = 0.25
"""Of a vector: its name says in few words what the description says among many."""
MAX_DESCRIPTORS = 100_000
_LETTERS = re.compile(r"[a-z]+")

VectorState = Literal["ready", "coming", "none"]


def fields_of(descriptor: Descriptor, learned: Iterable[str] = ()) -> tuple[str, ...]:
    """The searchable texts of a descriptor; never its schema, content or secrets."""
    shown = descriptor.display_name
    return (
        f"{descriptor.name} {shown}"
        if shown and _adds(shown, descriptor.name)
        else descriptor.name,
        descriptor.description,
        " ".join((descriptor.category, descriptor.server, *descriptor.tags)),
        " ".join([parameter.name for parameter in descriptor.parameters]),
        " ".join([parameter.description for parameter in descriptor.parameters]),
        "\n".join((*descriptor.examples, *learned)),
    )


def _adds(display_name: str, name: str) -> bool:
    return not set(words(display_name)) <= set(words(name))


_VERBS = (
    *("delete", "remove", "drop", "destroy", "purge", "wipe", "revoke", "terminate", "kill"),
    *("reset", "clear", "forget", "erase", "uninstall", "truncate"),
)
_ASKING = frozenset(
    stem(word)
    for word in (
        *_VERBS,
        *("abort", "ban", "block", "cancel", "clean", "close", "cut", "disable", "discard"),
        *("dismiss", "eliminate", "empty", "end", "exclude", "expire", "kick", "leave", "lose"),
        *("prune", "quit", "rid", "scrap", "shut", "stop", "strip", "take", "throw", "trash"),
        *("undo", "unfollow", "unlink", "unsubscribe", "void", "withdraw", "without"),
        *("deletion", "removal", "off", "out", "no", "not", "never"),
    )
)
"""Words of requests to which destruction may be the answer."""
_OF_NAMES = re.compile(
    rf"(?<![a-z])(?:{'|'.join(_VERBS)})|(?:{'|'.join(one.title() for one in _VERBS)})"
)


def is_destructive(descriptor: Descriptor) -> bool:
    """Tell whether a tool is said to destroy something, or bears the name of one that does."""
    return descriptor.is_destructive or _OF_NAMES.search(descriptor.name) is not None


def asks_for_destruction(request: str) -> bool:
    """Tell whether a request has a word to which something destructive may be the answer."""
    return any(stem(word) in _ASKING for word in _LETTERS.findall(request.lower()))


class Index:
    """Descriptors with their postings, vectors and edges."""

    def __init__(  # noqa: PLR0913 - what an index is made of
        self,
        descriptors: Sequence[Descriptor],
        lexical: LexicalIndex,
        vectors: Floats | None,
        *,
        vector_state: VectorState,
        graph: Graph,
        vocabulary: Vocabulary | None,
        penalties: Floats,
        destructive: Flags,
        version: int,
        came_from: Whole,
    ) -> None:
        self.version = version
        self.descriptors = tuple(descriptors)
        self.lexical = lexical
        self.vectors = vectors
        self.vector_state = vector_state
        """`coming`: they are still being made, and words alone rank meanwhile."""
        self.graph = graph
        self.vocabulary = vocabulary
        self.penalties = penalties
        self.destructive = destructive
        self.came_from = came_from
        """By row: the same descriptor's row in the index of the version before; -1: it is new."""
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

    def named(self, text: str) -> Sequence[int]:
        """The rows that go by this id, event, name or title, whoever may see them."""
        found = self.names.get(text.casefold(), ())
        return (found,) if isinstance(found, int) else found

    def is_available(self, row: int) -> bool:
        """Tell whether a row can be used now: it says so, and everything that it needs is here."""
        return self.descriptors[row].available and row not in self.graph.missing


def _names(descriptors: Sequence[Descriptor]) -> dict[str, int | list[int]]:
    """The row of each name; several rows as a list, which is rare."""
    found: dict[str, int | list[int]] = {}
    for row, one in enumerate(descriptors):
        for name in {one.id, one.name, one.event, one.display_name}:
            folded = name.casefold()
            known = found.setdefault(folded, row) if name else row
            if known is row or known == row:
                continue
            if isinstance(known, int):
                found[folded] = [known, row]
            elif known[-1] != row:
                known.append(row)
    return found


class Indexer:
    """Makes indexes, and keeps what the next one can use again.

    A refresh equals a build from nothing: what is kept depends on a descriptor's text alone.
    """

    def __init__(self, embedder: Embedder | None, cache: VectorCache) -> None:
        self.embedder = embedder
        self._cache = cache
        self._version = 0
        self._latest: Index | None = None
        self._lexical = LexicalIndex(Lexicon())
        self._learned: Sequence[Sequence[str]] = ()
        self.coming: list[str] = []
        """Texts whose vectors the latest index was made without."""
        self.problem = ""
        """Why the latest index has no vectors, though there is an embedder."""

    def sibling(self) -> "Indexer":
        """An indexer of other things, with the same model and the same cache."""
        return Indexer(self.embedder, self._cache)

    def build(
        self,
        descriptors: Iterable[Descriptor],
        lessons: Lessons = NO_LESSONS,
        *,
        most_texts: int | None = None,
    ) -> Index:
        """Make the index of these descriptors, of which no two have one id.

        Args:
            descriptors: what is to be found.
            lessons: what use has taught.
            most_texts: if more texts than these are to be embedded first, the index does without
                vectors, and `embed_coming` makes them; None: as many as there are.
        """
        ordered = sorted(descriptors, key=lambda descriptor: descriptor.id)[:MAX_DESCRIPTORS]
        learned = [tuple(lessons.examples.get(descriptor.id, ())) for descriptor in ordered]
        came_from = self._came_from(ordered, learned)
        self._lexical = self._words(ordered, learned, came_from)
        vectors = self._vectors(ordered, learned, came_from, most_texts)
        penalties = [lessons.penalties.get(descriptor.id, 0.0) for descriptor in ordered]
        state: VectorState = "coming" if self.coming else "none"
        self._version += 1
        self._learned = learned
        self._latest = Index(
            ordered,
            self._lexical,
            vectors,
            vector_state=state if vectors is None else "ready",
            graph=Graph(ordered, composed_edges(lessons.together)),
            vocabulary=self._vocabulary(),
            penalties=np.array(penalties, np.float32),
            destructive=self._destructive(ordered, came_from),
            version=self._version,
            came_from=came_from,
        )
        return self._latest

    def _came_from(self, ordered: Sequence[Descriptor], learned: Sequence[Sequence[str]]) -> Whole:
        """The row of each descriptor in the latest index, when nothing about it has changed."""
        found = np.full(len(ordered), -1, np.int64)
        latest = self._latest
        if latest is None or self._lexical.lexicon.is_full:
            self._lexical = LexicalIndex(Lexicon())
            self._latest = None
            return found
        for row, descriptor in enumerate(ordered):
            old = latest.rows.get(descriptor.id, -1)
            if old >= 0 and learned[row] == self._learned[old]:
                known = latest.descriptors[old]
                if known is descriptor or known == descriptor:
                    found[row] = old
        return found

    def _words(
        self, ordered: Sequence[Descriptor], learned: Sequence[Sequence[str]], came_from: Whole
    ) -> LexicalIndex:
        gone: list[tuple[str, ...]] = []
        if self._latest is not None:
            is_gone = np.ones(len(self._latest), np.bool_)
            is_gone[came_from[came_from >= 0]] = False
            old = self._latest.descriptors
            gone = [fields_of(old[row], self._learned[row]) for row in _rows_of(is_gone)]
        fresh = [fields_of(ordered[row], learned[row]) for row in _rows_of(came_from < 0)]
        return self._lexical.after(came_from, fresh, gone)

    def _destructive(self, ordered: Sequence[Descriptor], came_from: Whole) -> Flags:
        found = np.zeros(len(ordered), np.bool_)
        if self._latest:
            found = np.where(came_from >= 0, self._latest.destructive[came_from], found)
        for row in _rows_of(came_from < 0):
            found[row] = is_destructive(ordered[row])
        return found

    def _vocabulary(self) -> Vocabulary | None:
        """The words of the latest descriptors."""
        model: object = self.embedder
        if not isinstance(model, WordEmbedder):
            return None
        forms, counts = self._lexical.lexicon.forms, self._lexical.form_counts
        # In the order of the alphabet, so that it does not matter what was indexed before.
        found = sorted(word for word, number in forms.items() if counts[number])
        if len(found) > MOST_WORDS:
            often = sorted(found, key=lambda word: (-counts[forms[word]], word))
            found = sorted(often[:MOST_WORDS])
        known = self._latest.vocabulary if self._latest is not None else None
        return known.of(found) if known is not None else Vocabulary(found, model)

    def _vectors(
        self,
        ordered: Sequence[Descriptor],
        learned: Sequence[Sequence[str]],
        came_from: Whole,
        most_texts: int | None,
    ) -> Floats | None:
        """A vector for each: its own text, and the middle of the requests that it served."""
        self.coming, self.problem = [], ""
        if self.embedder is None:
            return None
        old = self._latest.vectors if self._latest else None  # an empty one is none
        fresh = range(len(ordered)) if old is None else _rows_of(came_from < 0)
        described = [ordered[row] for row in fresh]
        served = [(*one.examples, *learned[row]) for row, one in zip(fresh, described, strict=True)]
        texts = _texts(described, served)
        if most_texts is not None:
            unknown = self._cache.unknown(self.embedder, texts)
            if len(unknown) > most_texts:
                self.coming = unknown
                return None
        try:
            made = _rows(self._cache.vectors(self.embedder, texts), served)
        except EmbeddingError as error:
            self.problem = str(error)
            return None
        if old is None:
            found = made
        else:
            found = old[came_from]
            found[fresh] = made
        in_use = 2 * len(ordered) + sum(map(len, learned))
        self._cache.forget(self.embedder, in_use, lambda: _all_texts(ordered, learned))
        return found

    def embed_coming(self, most: int) -> None:
        """Embed some of the texts that the latest index does without; `problem`: why it failed."""
        part, self.coming = self.coming[:most], self.coming[most:]
        if not part or self.embedder is None:
            return
        try:
            self._cache.vectors(self.embedder, part)
            self.problem = ""
        except EmbeddingError as error:
            self.problem = str(error)
            self.coming = part + self.coming


def _rows_of(flags: Flags) -> list[int]:
    found: list[int] = np.flatnonzero(flags).tolist()
    return found


def _texts(descriptors: Sequence[Descriptor], served: Sequence[Sequence[str]]) -> list[str]:
    """What is embedded: a text and a name each, then the requests."""
    return [
        *map(text_of, descriptors),
        *map(plain_name, descriptors),
        *(request for requests in served for request in requests),
    ]


def _all_texts(ordered: Sequence[Descriptor], learned: Sequence[Sequence[str]]) -> list[str]:
    pairs = zip(ordered, learned, strict=True)
    return _texts(ordered, [(*one.examples, *requests) for one, requests in pairs])


def _rows(known: Floats, served: Sequence[Sequence[str]]) -> Floats:
    """The vectors of descriptors, from those of their texts, names and requests."""
    size = len(served)
    rows = unit((1 - _NAME_SHARE) * known[:size] + _NAME_SHARE * known[size : 2 * size])
    at = 2 * size
    for row, requests in enumerate(served):
        if requests:
            rows[row] += known[at : at + len(requests)].mean(axis=0)
            at += len(requests)
    return unit(rows)
