"""Counting tokens: by the tokenizer that ships with the vectors, by characters, or exactly.

A counter defines what a budget means: texts that leave are within their budget by its count. Each
says of itself how wrong it may be about the models that read them.
"""

import re
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol
from warnings import catch_warnings, simplefilter

from remit.errors import SettingsError
from remit.text.unicode import encodable
from remit.text.words import estimate_tokens

CounterName = Literal["auto", "llama", "chars", "o200k"]
COUNTER_NAMES: tuple[CounterName, ...] = ("auto", "llama", "chars", "o200k")

_REMEMBERED = 20_000
_LONG = 512
"""Characters from which a text is remembered by its hash, so that the memory stays small."""
_PIECE, _PIECES = 64, 65_536
"""Characters of a piece that is remembered, and how many are."""
_PART = 50_000
_STRETCH = 2_000
_BLANK = re.compile(r"(?<=[^ \u2581])[ \u2581]")
_SPECIAL = re.compile(r"<(?=s>|/s>|unk>)")


class Pieces:
    """The Llama 2 tokens of texts, by what stands between blanks: most of that was seen before.

    No token of Llama 2 has a blank behind another sign, so that the tokens of a text are those of
    its pieces, one behind the other.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the tokens of each text."""
        parts = [_BLANK.split(text) for text in texts]
        known = self._known
        made = self._read({piece for pieces in parts for piece in pieces if piece not in known})
        return [
            [token for piece in pieces for token in known.get(piece) or made.get(piece, ())]
            for pieces in parts
        ]

    def _read(self, fresh: Collection[str]) -> dict[str, tuple[int, ...]]:
        """The tokens of these pieces; what is long is not remembered."""
        if not fresh:
            return {}
        found = self._tokenizer.encode_batch_fast(list(fresh), add_special_tokens=False)
        made = {piece: tuple(one.ids) for piece, one in zip(fresh, found, strict=True)}
        if len(self._known) > _PIECES:
            self._known = {}  # not cleared: another thread may be reading it
        self._known.update(one for one in made.items() if len(one[0]) <= _PIECE)
        return made


class TokenCounter(Protocol):
    """Counts the tokens of a text; the same text always gives the same number, none gives 0."""

    @property
    def name(self) -> str:
        """What it is chosen by; two of one name count alike."""

    @property
    def error(self) -> str:
        """One sentence: how wrong it may be."""

    def count(self, text: str) -> int:
        """How many tokens the text has."""


class Memory:
    """What a text was counted as, for as many texts as fit; begun anew when it is full."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._known: dict[str | bytes, int] = {}

    def count(self, text: str) -> int:
        """The count, from memory if the text was seen before."""
        key = text if len(text) < _LONG else text_hash(text)
        known = self._known.get(key)
        if known is None:
            known = self._count(text)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = known
        return known


class CharsCounter:
    """Counts characters."""

    name = "chars"
    error = (
        "an estimate from characters: about 27 % above o200k on tools, twice above it on Chinese "
        "or Japanese; it can be below for base64, rows of punctuation and very rare signs"
    )

    def count(self, text: str) -> int:
        """About as many tokens as the text has, rather too many."""
        return estimate_tokens(text)


class LlamaCounter:
    """Counts with the Llama 2 tokenizer.

    A line break is a byte of its own there and no merge takes it in, so the count of a text is
    exactly the sum over its lines, and most lines were seen before.
    """

    name = "llama"
    error = "Llama 2 tokens: 14 to 28 % more than o200k counts on tool texts, seldom fewer"

    def __init__(self, tokenizer: Any = None) -> None:
        self._tokenizer = tokenizer or _read_tokenizer()
        self._memory = Memory(self._encoded)

    def count(self, text: str) -> int:
        """How many tokens the text has; markers such as <s> count as the text that they are."""
        if not text:
            return 0
        first, *rest = text.split("\n")
        # The tokenizer puts a blank before a text, but none before its later lines.
        total = self._memory.count(first) if first else 1
        for line in rest:
            total += self._memory.count(f"\n{line}") - 1 if line else 1
        return total

    def _encoded(self, text: str) -> int:
        first, *rest = _parts(_SPECIAL.sub("< ", encodable(text)))
        return self._pieces(first) + sum(self._pieces(f"\n{part}") - 2 for part in rest)

    def _pieces(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


class O200kCounter:
    """Counts exactly as recent OpenAI models do."""

    name = "o200k"
    error = "exact for models that read o200k; others differ by about a fifth"

    def __init__(self) -> None:
        try:
            with catch_warnings():
                simplefilter("ignore", DeprecationWarning)  # how it opens its own files
                package = import_module("bpe_openai")
                self._encode = package.get_encoding("o200k_base").encode_ordinary
        except ModuleNotFoundError as error:
            raise _not_installed("o200k", "bpe-openai") from error
        # Its merges cross line breaks: only whole texts are counted.
        self._memory = Memory(self._encoded)

    def count(self, text: str) -> int:
        """How many tokens the text has."""
        return self._memory.count(text) if text else 0

    def _encoded(self, text: str) -> int:
        # The package refuses very long texts; at a border of parts the sum may be one off.
        plain = encodable(text)
        return sum(
            len(self._encode(plain[start : start + _PART])) for start in range(0, len(plain), _PART)
        )


def make_counter(name: CounterName = "auto", tokenizer: Any = None) -> TokenCounter:
    """The counter of this name; `tokenizer`: that of the vectors, if it is loaded already.

    Raises:
        SettingsError: no such counter, or what it needs is not installed.
    """
    match name:
        case "auto":
            return LlamaCounter(tokenizer) if tokenizer or static_folder() else CharsCounter()
        case "llama":
            return LlamaCounter(tokenizer)
        case "chars":
            return CharsCounter()
        case "o200k":
            return O200kCounter()
    raise SettingsError(  # a name from a file has not been checked by mypy
        f"there is no token counter {name!r}", hint=f"choose one of {', '.join(COUNTER_NAMES)}"
    )


def static_folder() -> Path | None:
    """Where the extra `search` put its weights; None when it is not installed."""
    if find_spec("tokenizers") is None:
        return None
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _read_tokenizer() -> Any:
    folder = static_folder()
    if folder is None:
        raise _not_installed("search", "wordllama")
    from tokenizers import Tokenizer  # noqa: PLC0415 - an extra, and 20 ms

    file = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # it raises nothing more exact
        raise _unreadable(file, error) from error


def _not_installed(extra: str, package: str) -> SettingsError:
    return SettingsError(
        f"this token counter needs the package {package}, which is not installed",
        hint=f"pip install 'remit[{extra}]', or choose the counter 'chars'",
    )


def _unreadable(file: Path, error: Exception) -> SettingsError:
    return SettingsError(
        f"the tokenizer {file} cannot be read: {error}",
        hint="pip install --force-reinstall 'remit[search]', or choose the counter 'chars'",
    )


def _parts(line: str) -> list[str]:
    """A long line in parts, as encoding takes longer than it should when a text is long.

    They end before a blank: no token of Llama 2 has one behind another sign, so nothing is lost.
    Where no blank comes for long, a part ends anywhere, and the count may be one off.
    """
    parts, start = [], 0
    while len(line) - start > 2 * _STRETCH:
        found = _BLANK.search(line, start + _STRETCH, start + 2 * _STRETCH)
        end = found.start() if found else start + 2 * _STRETCH
        parts.append(line[start:end])
        start = end
    return [*parts, line[start:]]


def text_hash(text: str) -> bytes:
    """What a long text is remembered by."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
