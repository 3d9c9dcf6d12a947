"""An estimate of tokens from the characters of a text, for where no tokenizer is installed.

Seven ASCII characters count as two tokens, two bytes of anything else as one. Against o200k this
was never too low on the 356 tools and the skills that it was measured on (by 27 % too high on
average, twice too high for Chinese and Japanese); it is too low for what is no language: base64,
rows of punctuation, very rare signs.
"""

_WHOLE = 14


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
