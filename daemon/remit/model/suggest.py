"""What somebody probably meant. Fuzzy matching serves these hints and nothing else."""

from collections.abc import Iterable

_FEW = 12


def nearest(word: str, known: Iterable[str], *, count: int = 1) -> list[str]:
    """The known words most like `word`, best first."""
    import difflib  # noqa: PLC0415 - 3 ms that only a mistake has to pay

    return difflib.get_close_matches(word, sorted(known), n=count, cutoff=0.6)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint with the nearest known word, or the list of words when it is short."""
    choices = sorted(known)
    near = nearest(word, choices)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(choices)}" if 0 < len(choices) <= _FEW else ""
