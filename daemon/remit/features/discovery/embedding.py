"""Vectors of texts: what makes them, and how they are kept by the hash of their text.

Nothing is embedded twice, not even by a restart. The file is a head line and records of one size: a
hash and a row of half floats. A record that was cut off by a crash is dropped at the next start; a
file of another model or shape is begun anew.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from remit.model.descriptor import Descriptor
from remit.text.counting import text_hash
from remit.text.words import stem

# One thread a process: on a busy machine the default thread pool of the linear algebra library made
# one query fifty times slower, and our matrices are too small to gain from it. It reads its setting
# when numpy is imported, so every module of this package imports numpy from here.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - the setting comes first
from numpy.typing import NDArray  # noqa: E402

__all__ = [
    "Embedder",
    "EmbeddingError",
    "Flags",
    "Floats",
    "VectorCache",
    "Whole",
    "np",
    "products",
    "shares",
    "spread",
    "text_of",
    "unit",
]

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Whole = NDArray[np.int64]
Numbers = NDArray[np.integer[Any]]
"""Whole numbers of whatever width: small ones are kept small."""
Halves = NDArray[np.float16]
"""What vectors are kept as: half the room, and as good."""


_BLOCK = 512
"""Rows that stay in the processor's cache while several vectors are held against them."""


def products(asked: Floats, rows: Floats) -> Floats:
    """The scalar products of each vector with every row: one line a vector.

    Large indexes do not fit a cache, and reading them is most of the price: each block is read
    once for all vectors. One product of two matrices is slower than this for so few vectors.
    """
    found = np.empty((len(asked), len(rows)), np.float32)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        for line, vector in zip(found, asked, strict=True):
            np.matmul(block, vector, out=line[start : start + _BLOCK])
    return found


def shares(values: Floats, among: Flags) -> Floats:
    """Values as shares of the largest `among` them; all zeros stay zeros."""
    high = values[among].max(initial=0.0)
    if high <= 0:
        return np.zeros_like(values)
    found: Floats = values / high
    return found


def spread(values: Floats, among: Flags) -> Floats:
    """Values from 0 to 1 by their place between the smallest and the largest `among` them."""
    chosen = values[among]
    if not chosen.size:
        return np.zeros_like(values)
    low, high = chosen.min(), chosen.max()
    if high <= low:  # one alone is the best there is
        return np.ones_like(values)
    found: Floats = (values - low) / (high - low)
    return found


_HASH = 16
_BATCH = 512
_SPARE = 10_000
"""Vectors of texts that are gone, which may come back."""
MAX_KEPT = 400_000
"""Records after which the file is begun anew, rather than grow for ever."""


class EmbeddingError(Exception):
    """No vectors can be had now; ranking goes on without them."""


class Embedder(Protocol):
    """Turns texts into vectors of length one. A failure to do so costs the ranking its vectors."""

    @property
    def name(self) -> str:
        """The model and its version: vectors of two names are never mixed."""

    @property
    def dimensions(self) -> int:
        """How long each vector is."""

    @property
    def is_slow(self) -> bool:
        """Tell whether a request must be embedded in a worker thread."""

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row a text; a text without anything to embed is all zeros.

        Raises:
            EmbeddingError: there are none to be had now.
        """

    def reads(self, words: Sequence[str]) -> bool:
        """Tell whether the words are language, and not letters that a hand fell on."""


def plain_name(descriptor: Descriptor) -> str:
    """The name in words."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", descriptor.name)
    return " ".join(re.sub(r"[_.:/-]+", " ", apart).split())


def text_of(descriptor: Descriptor) -> str:
    """What is embedded of a descriptor; never its schema, content or secrets."""
    name = descriptor.display_name or plain_name(descriptor)
    parts = [f"{name} ({descriptor.name}). {descriptor.description}."]
    if descriptor.server:
        parts.append(f"Server: {descriptor.server}.")
    if descriptor.category:
        parts.append(f"Category: {descriptor.category}.")
    if descriptor.tags:
        parts.append(f"Use cases: {', '.join(descriptor.tags)}.")
    if descriptor.parameters:
        names = ", ".join(parameter.name for parameter in descriptor.parameters)
        texts = " ".join(parameter.description for parameter in descriptor.parameters)
        parts.append(f"Parameters: {names}. {texts}".rstrip())
    if descriptor.required_tools:
        parts.append(f"Requires: {', '.join(descriptor.required_tools)}.")
    return " ".join(parts)


def unit(rows: Floats) -> Floats:
    """The rows at length one; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


# Which words of a catalogue mean nearly the same as a word of a request: "petrol" finds what speaks
# of "fuel". Words are compared as they are written; what they vote for is their stem, as the
# postings have it.


MOST_WORDS = 20_000
"""Words of a catalogue that are voted for; of more, those that stand in the most descriptors."""
_NEAR = 0.4
"""The cosine below which two words have nothing to do with each other."""
_SHORT = 3
_NEIGHBOURS = 8_192


@runtime_checkable
class WordEmbedder(Protocol):
    """A model to which a single word is a text like any other, and as cheap."""

    def embed_words(self, words: Sequence[str]) -> Floats:
        """One row of length one a word."""


@runtime_checkable
class PartedEmbedder(Protocol):
    """A model whose vectors are those of several models, one behind the other."""

    @property
    def parts(self) -> Sequence[slice]:
        """Where each one stands."""

    @property
    def words_share(self) -> float:
        """What is left to words; the models share the rest."""


def is_votable(word: str) -> bool:
    """Tell whether a word can be voted for: letters, and enough of them."""
    return len(word) >= _SHORT and word.isalpha()


class Vocabulary:
    """The words of one index with their vectors."""

    def __init__(
        self, words: Iterable[str], model: WordEmbedder, vectors: Floats | None = None
    ) -> None:
        self._words = tuple(words)
        self._model = model
        self._vectors = model.embed_words(self._words) if vectors is None else vectors
        self._known: dict[str, tuple[tuple[str, float], ...]] = {}

    def of(self, words: Sequence[str]) -> "Vocabulary":
        """The vocabulary of these words; only those that this one has not are embedded."""
        if self._words == tuple(words):
            return self
        rows = {word: row for row, word in enumerate(self._words)}
        places = np.array([rows.get(word, -1) for word in words], np.int64)
        fresh = np.flatnonzero(places < 0).tolist()
        vectors = self._vectors[places] if rows else np.zeros((len(words), 0), np.float32)
        if len(fresh) == len(words):
            return Vocabulary(words, self._model)
        vectors[fresh] = self._model.embed_words([words[row] for row in fresh])
        return Vocabulary(words, self._model, vectors)

    def look_up(self, words: Iterable[str]) -> None:
        """Find what is near to these words, all at once: the vectors are read once for them all."""
        fresh = [word for word in dict.fromkeys(words) if word not in self._known]
        if len(self._known) + len(fresh) > _NEIGHBOURS:
            self._known = {}  # not cleared: another thread may be reading it
        asked = [word for word in fresh if self._words and is_votable(word)]
        self._known.update(dict.fromkeys(fresh, ()))
        if not asked:
            return
        cosines = self._model.embed_words(asked) @ self._vectors.T
        for word, line in zip(asked, cosines, strict=True):
            self._known[word] = self._nearest(word, line)

    def near(self, word: str) -> tuple[tuple[str, float], ...]:
        """The stems of words that mean nearly the same, nearest first, each with its cosine."""
        if word not in self._known:
            self.look_up([word])
        return self._known.get(word, ())

    def _nearest(self, word: str, cosines: Floats) -> tuple[tuple[str, float], ...]:
        rows = np.flatnonzero(cosines >= _NEAR)
        own = stem(word)
        found: dict[str, float] = {}
        for row in sorted(rows, key=lambda row: (-float(cosines[row]), self._words[row])):
            other = stem(self._words[row])
            if other != own:
                found.setdefault(other, float(cosines[row]))
        return tuple(found.items())


class VectorCache:
    """Vectors by text: on disk, or in memory when there is no folder. For several threads.

    Of a file only the places of its records are kept in memory: an index holds its own rows.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._model = ""
        self._places: dict[bytes, int] = {}
        self._count = 0
        """Records, of which some may be double."""
        self._rows: Halves = np.zeros((0, 0), np.float16)
        """Records that no file holds, and room for more."""
        self._lock = Lock()
        self.embedded = 0
        """Texts that really had to be embedded, since the start."""

    def unknown(self, embedder: Embedder, texts: Sequence[str]) -> list[str]:
        """Those of the texts that would have to be embedded, each once."""
        with self._lock:
            self._open(embedder)
            fresh = {key: text for text in texts if (key := text_hash(text)) not in self._places}
        return list(fresh.values())

    def vectors(self, embedder: Embedder, texts: Sequence[str]) -> Floats:
        """One row a text; only those never seen before are embedded."""
        with self._lock:
            self._open(embedder)
            hashes = [text_hash(text) for text in texts]
            pairs = zip(hashes, texts, strict=True)
            fresh = {key: text for key, text in pairs if key not in self._places}
            items = list(fresh.items())
            for start in range(0, len(items), _BATCH):
                part = dict(items[start : start + _BATCH])
                rows = embedder.embed(list(part.values())).astype(np.float16)
                self.embedded += len(part)
                self._append(embedder, list(part), rows)
            found = self._stored(embedder, [self._places[key] for key in hashes])
            return found.astype(np.float32)

    def forget(self, embedder: Embedder, in_use: int, texts: Callable[[], Iterable[str]]) -> None:
        """Begin the file anew when most of it belongs to texts that are gone.

        Args:
            embedder: whose vectors these are.
            in_use: about how many texts are in use.
            texts: all of them.
        """
        # The index of a start, before anything was read, forgets nothing.
        if not in_use or self._count <= 2 * in_use + _SPARE:
            return
        with self._lock:
            self._open(embedder)
            hashes = dict.fromkeys(map(text_hash, texts()))
            kept = [key for key in hashes if key in self._places]
            rows = self._stored(embedder, [self._places[key] for key in kept])
            self._begin(embedder)
            self._append(embedder, kept, rows)

    def _open(self, embedder: Embedder) -> None:
        if embedder.name != self._model:
            self._model = embedder.name
            self._empty(embedder)
            self._read(embedder)

    def _empty(self, embedder: Embedder) -> None:
        self._places, self._count = {}, 0
        self._rows = np.zeros((0, embedder.dimensions), np.float16)

    def _stored(self, embedder: Embedder, places: Sequence[int]) -> Halves:
        """These records."""
        wanted, path = np.array(places, np.int64), self._path(embedder)
        if path is None or not self._count:
            return self._rows[wanted]
        offset, shape = len(self._head(embedder)), (self._count, self._record(embedder))
        raw = np.memmap(path, np.uint8, "r", offset, shape)
        return np.ascontiguousarray(raw[wanted, _HASH:]).view(np.float16)

    def _path(self, embedder: Embedder) -> Path | None:
        return self._folder / f"vectors-{embedder.name}.bin" if self._folder else None

    def _head(self, embedder: Embedder) -> bytes:
        return f"remit vectors 1 {embedder.name} {embedder.dimensions}\n".encode()

    def _record(self, embedder: Embedder) -> int:
        return _HASH + 2 * embedder.dimensions

    def _read(self, embedder: Embedder) -> None:
        """Learn what the file holds; begin it anew when it is not what it should be."""
        path, head, record = self._path(embedder), self._head(embedder), self._record(embedder)
        if path is None:
            return
        try:
            with path.open("rb") as file:
                is_ours = file.read(len(head)) == head
            size = path.stat().st_size - len(head)
            if not is_ours or size // record > MAX_KEPT:
                self._begin(embedder)
                return
            if size % record:
                os.truncate(path, len(head) + size - size % record)
        except OSError:  # it is not there yet, or cannot be written
            self._begin(embedder)
            return
        self._count = size // record
        if self._count:
            raw = np.memmap(path, np.uint8, "r", len(head), (self._count, record))
            keys = raw[:, :_HASH].tobytes()
            self._places = {keys[_HASH * at : _HASH * (at + 1)]: at for at in range(self._count)}

    def _begin(self, embedder: Embedder) -> None:
        path = self._path(embedder)
        self._empty(embedder)
        if path is None:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(self._head(embedder))
            path.chmod(0o600)
        except OSError:
            self._folder = None  # a full disk costs the next start its time, and nothing else

    def _append(self, embedder: Embedder, keys: Sequence[bytes], rows: Halves) -> None:
        path = self._path(embedder)
        if path is not None:
            try:
                with path.open("ab") as file:
                    pairs = zip(keys, rows, strict=True)
                    file.write(b"".join(key + row.tobytes() for key, row in pairs))
            except OSError:
                self._rows = self._stored(embedder, range(self._count))
                self._folder = path = None
        if path is None:
            self._hold(rows)
        self._places.update(zip(keys, range(self._count, self._count + len(keys)), strict=True))
        self._count += len(keys)

    def _hold(self, rows: Halves) -> None:
        """Put records behind those in memory."""
        needed = self._count + len(rows)
        if needed > len(self._rows):
            room = np.zeros((2 * needed, self._rows.shape[1]), np.float16)
            room[: self._count] = self._rows[: self._count]
            self._rows = room
        self._rows[self._count : needed] = rows
