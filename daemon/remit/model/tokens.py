"""An estimate of tokens, wrong by about a fifth on single tools."""

import math

_CHARACTERS_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """About as many tokens as a model would count, rounded up."""
    return math.ceil(len(text) / _CHARACTERS_PER_TOKEN)
