"""Vectors from an OpenAI-compatible server, for those who run one.

Texts of descriptors and requests leave the machine by this, so it is never chosen by itself. When
the server does not answer, ranking goes on by words alone.
"""

import json
import re
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from remit.errors import SettingsError
from remit.features.discovery.embedding import EmbeddingError, Floats, np, unit

_SECONDS = 20.0
_MAX_ANSWER = 64 << 20
_BATCH = 128
_CHARACTERS = 8_000
_OK = 200


class RemoteVectors:
    """`POST {url}/embeddings` with a model name and, if there is one, a bearer key."""

    is_slow = True

    def __init__(self, url: str, model: str, key: str = "") -> None:
        """Ask the server once, to learn how long its vectors are.

        Raises:
            SettingsError: the address is none.
            EmbeddingError: the server does not answer as it should.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            message = f"embedder_url must be an http or https address, not {url!r}"
            raise SettingsError(message, hint="as in http://127.0.0.1:8080/v1")
        self._parts, self._model, self._key = parts, model, key
        self.name = re.sub(r"[^A-Za-z0-9.-]+", "_", f"http-{parts.hostname}-{model}")[:120]
        self.dimensions = len(self._ask(["dimensions"])[0])

    def embed(self, texts: Sequence[str]) -> Floats:
        """The server's vectors at length one.

        Raises:
            EmbeddingError: it did not answer as it should.
        """
        found: list[Sequence[float]] = []
        for start in range(0, len(texts), _BATCH):
            found += self._ask(
                [text[:_CHARACTERS] or " " for text in texts[start : start + _BATCH]]
            )
        try:
            rows = np.array(found, np.float32).reshape(len(texts), self.dimensions)
        except (TypeError, ValueError) as error:
            raise EmbeddingError(f"{self.name} sent vectors of another shape") from error
        if not np.isfinite(rows).all():
            raise EmbeddingError(f"{self.name} sent numbers that are none")
        return unit(rows)

    def reads(self, words: Sequence[str]) -> bool:
        """Whatever has words: the model is not ours to judge."""
        return bool(words)

    def _ask(self, texts: list[str]) -> list[Sequence[float]]:
        body = json.dumps({"model": self._model, "input": texts})
        try:
            answer = json.loads(self._post(body))
            rows = sorted(answer["data"], key=lambda row: row["index"])
            found = [row["embedding"] for row in rows]
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(f"{self.name} did not answer as it should: {error}") from error
        if len(found) != len(texts):
            raise EmbeddingError(f"{self.name} sent {len(found)} vectors for {len(texts)} texts")
        return found

    def _post(self, body: str) -> bytes:
        make = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        connection = make(self._parts.hostname or "", self._parts.port, timeout=_SECONDS)
        headers: Mapping[str, str] = {"Content-Type": "application/json"}
        if self._key:
            headers = {**headers, "Authorization": f"Bearer {self._key}"}
        try:
            path = f"{self._parts.path.rstrip('/')}/embeddings"
            connection.request("POST", path, body.encode(), dict(headers))
            answer = connection.getresponse()
            raw = answer.read(_MAX_ANSWER + 1)
        finally:
            connection.close()
        if answer.status != _OK:
            raise HTTPException(f"status {answer.status}")
        if len(raw) > _MAX_ANSWER:
            raise HTTPException("the answer is too large")
        return raw
