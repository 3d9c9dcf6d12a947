"""Words of a text as search and cards know them: split, lowered, without filler, stemmed.

Request words such as "please" are filler too: in a small catalogue they are rare, and a rare word
would weigh more than the words that matter.

Where no tokenizer is installed, tokens are estimated from the characters: seven ASCII characters
count as two tokens, two bytes of anything else as one. Against o200k this was never too low on the
356 tools and the skills that it was measured on (by 27 % too high on average, twice too high for
Chinese and Japanese); it is too low for what is no language: base64, rows of punctuation, very rare
signs.
"""

import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(
    r"[a-z]+|\d+"
    r"|[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0002fa1f]"  # one a sign
    r"|[^\W\d_a-z]+"
)
_VOWEL = re.compile(r"[aeiouy]")

_FILLER = """
a about above after again against all also am an and any are aren as at be because been before
being below between both but by can cannot could couldn did didn do does doesn doing don down
during each few for from further had hadn has hasn have haven having he her here hers him his how
i if in into is isn it its itself just ll me more most my myself no nor not now of off on once
only or other our ours out over own re s same shan she should shouldn so some such t than that the
their theirs them themselves then there these they this those through to too under until up us ve
very was wasn we were weren what when where which while who whom why will with won would wouldn
you your yours yourself ask assist assistance please help hello hi hey thank thanks want wants
wanted need needs needed like could would let lets tell know give gives given provide provides
provided using use used uses able looking look going got get gets getting make makes may might
must shall way possible d m im id ill kindly wondering interested trying try currently today
really actually something anything someone everything
"""
FILLER = frozenset(_FILLER.split())
_SHORT = 3
_PLURAL = 4
"""Letters: shorter words are left as they are."""
_LONG = 40
"""Longer ones are no words, and must not fill the memory of those that are."""

_WHOLE = 14


def words(text: str, *, stemmed: bool = True) -> list[str]:
    """The words of a text that can tell one thing from another, in order, repeats kept."""
    split = _CAMEL.sub(" ", text).lower()
    found = [word for word in _WORD.findall(split) if word not in FILLER]
    return stems(found) if stemmed else found


def stem(word: str) -> str:
    """The word without its commonest English endings; others are left alone."""
    return _stem(word) if len(word) <= _LONG else word


def stems(found: list[str]) -> list[str]:
    """The same for many words, faster."""
    if max(map(len, found), default=0) > _LONG:
        return [stem(word) for word in found]
    return list(map(_stem, found))


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    if len(word) <= _SHORT or not word.isascii() or not word.isalpha():
        return word
    return _without_tail(_without_plural(word))


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > _PLURAL:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_tail(word: str) -> str:
    for tail in ("ing", "ed"):
        base = word.removesuffix(tail)
        if base != word and len(base) >= _SHORT and _VOWEL.search(base):
            return _mended(base)
    if word.endswith("ly") and len(word) > _PLURAL + 1:
        return word[:-2]
    return word[:-1] if word.endswith("e") and len(word) > _PLURAL else word


def _mended(base: str) -> str:
    """What is left of a verb: `runn` was run; `schedul` stays, as `schedule` loses its e."""
    if len(base) > _SHORT and base[-1] == base[-2] and base[-1] not in "lsz":
        return base[:-1]
    return base


def estimate_tokens(text: str) -> int:
    """Rather too many tokens than too few, rounded up."""
    return tokens_in(token_weight(text))


def token_weight(text: str) -> int:
    """A text in parts of a token: the weight of a whole is the sum of its pieces' weights."""
    plain = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - plain
    return 4 * plain + 7 * others


def tokens_in(weight: int) -> int:
    """The tokens of a weight, rounded up."""
    return -(-weight // _WHOLE)


# ---- as people spell them, in any script ----

_UNSPACED = (
    "\u0e01-\u0e5b\u0e81-\u0edf\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0002fa1f"
)
_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0903\u093a-\u094f\u0980-\u0dff"
)
_SPELLED = re.compile(
    rf"[{_UNSPACED}]"
    r"|[a-z](?:\+\+|#(?!\w))"  # c++ and c# are words
    rf"|(?:(?![{_UNSPACED}_])\w)(?:(?![{_UNSPACED}_])[\w{_MARKS}])*"
)
_PLAIN_SPELLED = re.compile(r"[a-z](?:\+\+|#(?!\w))|[a-z0-9]+")
"""The same for text that is all ASCII, which is most text, and faster."""
IS_UNSPACED = re.compile(f"[{_UNSPACED}]")

_ARABIC = re.compile("[\u0621-\u064a\ufb50-\ufefc]")
_ARABIC_MARKS = re.compile("[\u0640\u064b-\u0652\u0670]")
_ALIKE = str.maketrans("أإآٱىة", "اااايه")
_PREFIXES = ("وال", "بال", "كال", "فال", "لل", "ال", "و")
_SUFFIXES = ("ها", "ان", "ات", "ون", "ين", "يه", "ه", "ي")  # noqa: RUF001
_FOREIGN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]{1,100}")
"""Normalised piece by piece: a long run of combining marks takes time with its square."""
_GROWN = 300
"""Characters that a piece may become; a few signs become eighteen each."""
_ROOT = 3
"""Letters that are left of an Arabic word at the least."""
SILENT = frozenset(map(stem, FILLER)) | FILLER
"""Words that say nothing about what a message is about."""


def spelled(text: str) -> list[str]:
    """The words of a text, lowered and without endings, in order, nothing left out.

    Chinese, Japanese, Korean and the scripts of South-East Asia write no borders between words:
    each of their signs is a word here. Arabic loses its short vowels and the commonest particles
    (Larkey's light10), English its commonest endings.
    """
    if text.isascii():
        return stems(_PLAIN_SPELLED.findall(text.lower()))
    found = _SPELLED.findall(_FOREIGN.sub(_normal, text).lower())
    if not _ARABIC.search(text):
        return stems(found)
    return [_arabic(word) if _ARABIC.match(word) else stem(word) for word in found]


def _normal(run: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", run.group())[:_GROWN]


def _arabic(word: str) -> str:
    return word if len(word) > _LONG else _light(word)


@lru_cache(maxsize=16_384)
def _light(word: str) -> str:
    word = _ARABIC_MARKS.sub("", word).translate(_ALIKE)
    for prefix in _PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= _ROOT:
            word = word[len(prefix) :]
            break
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _ROOT:
            word = word[: -len(suffix)]
    return word


Frequency = Literal["every_day", "often", "rare"]


def frequency(word: str) -> Frequency:
    """How often people write a word without its endings; one of another script: often."""
    return _frequencies().get(word, "rare") if word.isascii() else "often"


@cache
def _frequencies() -> dict[str, Frequency]:
    lines = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").splitlines()
    found: dict[str, Frequency] = dict.fromkeys(SILENT, "every_day")
    now: Frequency = "every_day"
    for line in lines:
        if line.startswith("["):
            now = "every_day" if line == "[every day]" else "often"
        elif not line.startswith("#"):
            found |= dict.fromkeys(line.split(), now)
    return found
