"""How likely a hit serves its request: a probability, from signals that mean the same everywhere.

The fused score of a ranking compares the rows of one view with each other: its best row is near 1
even where nothing fits. What is shown to a model must say more. Each signal here is absolute, such
as the share of the best possible BM25F score or the cosine itself, and `relevance.json` weighs
them: for one row, and for the question whether anything in the view serves the request at all.
`tools/bench/relevance.py --fit` writes that table; the models differ in what their cosines mean, so
each has a line of its own.
"""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from remit.features.discovery.embedding import Floats, np

ROW_SIGNALS = (
    *("fused", "share", "best_share", "cosine", "best_cosine", "named", "score"),
    *("named_share", "agreement"),
)
REQUEST_SIGNALS = ("words", "steps", "catalogue", "known")
TOP = 5
"""How many of the best rows say whether anything fits."""
WORDS_ALONE = "words"
"""The line of the table for rankings without vectors, or by a model that has none."""
TABLE = Path(__file__).with_name("relevance.json")


class RankSignals(msgspec.Struct, frozen=True):
    """What speaks for some rows, best first, and what is known of the request."""

    rows: Floats
    """A line a row: `ROW_SIGNALS`."""
    request: Sequence[float]
    """`REQUEST_SIGNALS`."""

    def of_rows(self) -> Floats:
        """A line a row, with what is known of the request."""
        asked = np.tile(np.array(self.request, np.float32), (len(self.rows), 1))
        return np.hstack([self.rows, asked])

    def of_request(self) -> Floats:
        """One line: the best row, what is best among the first, and the request."""
        top = self.rows[:TOP]
        return np.hstack([top[0], top.max(axis=0), top.mean(axis=0), self.request])


class Regression(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A logistic regression."""

    weights: tuple[float, ...]
    bias: float

    def __call__(self, lines: Floats) -> Floats:
        """The probability of each line."""
        exponent = np.clip(lines @ np.array(self.weights, np.float32) + self.bias, -30, 30)
        found: Floats = 1 / (1 + np.exp(-exponent))
        return found


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the signals of one kind of ranking are weighed."""

    row: Regression
    fits: Regression

    def relevance(self, signals: RankSignals) -> tuple[Floats, float]:
        """How likely each row serves the request, and how likely anything does."""
        if not len(signals.rows):
            return np.zeros(0, np.float32), 0.0
        fits = float(self.fits(signals.of_request()[None])[0])
        return np.minimum(self.row(signals.of_rows()), fits), fits


@cache
def calibrations() -> dict[str, Calibration]:
    """The table, by the name of the model."""
    return msgspec.json.decode(TABLE.read_bytes(), type=dict[str, Calibration])


def calibration(model: str) -> Calibration:
    """The calibration for a model."""
    found = calibrations()
    return found.get(model, found[WORDS_ALONE])


def request_signals(words: int, steps: int, catalogue: int, known: float) -> tuple[float, ...]:
    """What is known of a request, on scales that grow slowly.

    Args:
        words: how many it has.
        steps: how many steps it has, if more than one.
        catalogue: how many descriptors are searched.
        known: the share of its words that stand in one of them.
    """
    return math.log1p(words), float(steps > 0), math.log1p(catalogue), known
