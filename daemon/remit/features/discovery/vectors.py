"""Vectors kept by the hash of their text, so that nothing is embedded twice, not even by a restart.

The file is a head line and records of one size: a hash and a row of half floats. A record that was
cut off by a crash is dropped at the next start; a file of another model or shape is begun anew.
"""

import os
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from remit.features.discovery.embedding import Embedder, Floats, np

_HASH = 16
_BATCH = 512
_SPARE = 10_000
"""Vectors of texts that are gone, which may come back."""
MAX_KEPT = 400_000
"""Records after which the file is begun anew, rather than grow for ever."""


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
        hashes = [_hash(text) for text in texts]
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


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH).digest()
