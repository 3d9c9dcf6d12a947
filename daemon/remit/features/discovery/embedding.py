"""Vectors of texts: what makes them, and how they are kept by the hash of their text.

Nothing is embedded twice, not even by a restart. The file is a head line and records of one size: a
hash and a row of half floats. A record that was cut off by a crash is dropped at the next start; a
file of another model or shape is begun anew.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from remit.features.discovery.counting import text_hash
from remit.model.descriptor import Descriptor
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


def is_votable(word: str) -> bool:
    """Tell whether a word can be voted for: letters, and enough of them."""
    return len(word) >= _SHORT and word.isalpha()


class Vocabulary:
    """The words of one index with their vectors."""

    def __init__(self, words: Iterable[str], model: WordEmbedder) -> None:
        self._words = tuple(words)
        self._model = model
        self._vectors = model.embed_words(self._words)
        self._known: dict[str, tuple[tuple[str, float], ...]] = {}

    def near(self, word: str) -> tuple[tuple[str, float], ...]:
        """The stems of words that mean nearly the same, nearest first, each with its cosine."""
        found = self._known.get(word)
        if found is None:
            if len(self._known) >= _NEIGHBOURS:
                self._known = {}
            found = self._known[word] = self._nearest(word)
        return found

    def _nearest(self, word: str) -> tuple[tuple[str, float], ...]:
        if not self._words or not is_votable(word):
            return ()
        cosines = self._vectors @ self._model.embed_words([word])[0]
        rows = np.flatnonzero(cosines >= _NEAR)
        own = stem(word)
        found: dict[str, float] = {}
        for row in sorted(rows, key=lambda row: (-float(cosines[row]), self._words[row])):
            other = stem(self._words[row])
            if other != own:
                found.setdefault(other, float(cosines[row]))
        return tuple(found.items())


class VectorCache:
    """Vectors by text, in memory and, given a folder, on disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._known: dict[bytes, Floats] = {}
        self._model = ""
        self.embedded = 0
        """Texts that really had to be embedded, since the start."""

    def vectors(self, embedder: Embedder, texts: Sequence[str]) -> Floats:
        """One row a text; only those never seen before are embedded."""
        if embedder.name != self._model:
            self._model, self._known = embedder.name, self._read(embedder)
        if not texts:  # the index of a start, before anything was read: it forgets nothing
            return np.zeros((0, embedder.dimensions), np.float32)
        hashes = [text_hash(text) for text in texts]
        fresh = {
            key: text for key, text in zip(hashes, texts, strict=True) if key not in self._known
        }
        self._learn(embedder, fresh)
        if len(self._known) > 2 * len(hashes) + _SPARE:
            self._forget_all_but(embedder, hashes)
        return np.stack([self._known[key] for key in hashes]).astype(np.float32)

    def _learn(self, embedder: Embedder, fresh: dict[bytes, str]) -> None:
        items = list(fresh.items())
        for start in range(0, len(items), _BATCH):
            batch = items[start : start + _BATCH]
            rows = embedder.embed([text for _key, text in batch]).astype(np.float16)
            self.embedded += len(batch)
            found = {key: row for (key, _text), row in zip(batch, rows, strict=True)}
            self._known |= found
            self._append(embedder, found)

    def _forget_all_but(self, embedder: Embedder, hashes: Sequence[bytes]) -> None:
        """Begin the file anew with what is in use; old texts would else stay for ever."""
        self._known = {key: self._known[key] for key in hashes}
        self._begin(self._path(embedder), self._head(embedder))
        self._append(embedder, self._known)

    def _path(self, embedder: Embedder) -> Path | None:
        return self._folder / f"vectors-{embedder.name}.bin" if self._folder else None

    def _head(self, embedder: Embedder) -> bytes:
        return f"remit vectors 1 {embedder.name} {embedder.dimensions}\n".encode()

    def _read(self, embedder: Embedder) -> dict[bytes, Floats]:
        path, head = self._path(embedder), self._head(embedder)
        record = _HASH + 2 * embedder.dimensions
        try:
            raw = path.read_bytes() if path else b""
        except OSError:  # it is not there yet, or will be begun anew
            raw = b""
        body = raw[len(head) :]
        if not raw.startswith(head) or len(body) // record > MAX_KEPT:
            self._begin(path, head)
            return {}
        whole = len(body) // record
        if path and whole * record != len(body):
            os.truncate(path, len(head) + whole * record)
        table = np.frombuffer(body, np.uint8, whole * record).reshape(whole, record)
        rows = table[:, _HASH:].copy().view(np.float16)
        return {table[at, :_HASH].tobytes(): rows[at] for at in range(whole)}

    def _begin(self, path: Path | None, head: bytes) -> None:
        if path is None:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(head)
            path.chmod(0o600)
        except OSError:
            self._folder = None  # a full disk costs the next start its time, and nothing else

    def _append(self, embedder: Embedder, found: dict[bytes, Floats]) -> None:
        path = self._path(embedder)
        if path is None:
            return
        try:
            with path.open("ab") as file:
                file.write(b"".join(key + row.tobytes() for key, row in found.items()))
        except OSError:
            self._folder = None
