"""numpy, with one thread a process.

On a busy machine the default thread pool of the linear algebra library made one query fifty times
slower; our matrices are too small to gain from it. It reads its setting when numpy is imported, so
every module of this package imports numpy from here.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - the setting comes first
from numpy.typing import NDArray  # noqa: E402

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Whole = NDArray[np.int64]


_BLOCK = 512
"""Rows that stay in the processor's cache while several vectors are held against them."""


def products(asked: Floats, rows: Floats) -> Floats:
    """The scalar products of each vector with every row: one line a vector.

    Large indexes do not fit a cache, and reading them is most of the price: each block is read
    once for all vectors. One product of two matrices is slower than this for so few vectors.
    """
    found = np.empty((len(asked), len(rows)), np.float32)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        for line, vector in zip(found, asked, strict=True):
            np.matmul(block, vector, out=line[start : start + _BLOCK])
    return found


def shares(values: Floats, among: Flags) -> Floats:
    """Values as shares of the largest `among` them; all zeros stay zeros."""
    high = values[among].max(initial=0.0)
    if high <= 0:
        return np.zeros_like(values)
    found: Floats = values / high
    return found


def spread(values: Floats, among: Flags) -> Floats:
    """Values from 0 to 1 by their place between the smallest and the largest `among` them."""
    chosen = values[among]
    if not chosen.size:
        return np.zeros_like(values)
    low, high = chosen.min(), chosen.max()
    if high <= low:  # one alone is the best there is
        return np.ones_like(values)
    found: Floats = (values - low) / (high - low)
    return found


__all__ = ["Flags", "Floats", "Whole", "np", "products", "shares", "spread"]
