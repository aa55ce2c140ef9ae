"""Linear least squares with no coefficient below 0, for the few coefficients of a law."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def nonnegative_least_squares(matrix: Floats, target: Floats) -> Floats:
    """Return c >= 0 with the least |matrix c - target|.

    The solution is the free one of the columns that it uses (Lawson and Hanson, *Solving Least
    Squares Problems*, 1974, chapter 23), and so the best of those that are not negative, over all
    sets of columns. For three columns these are seven; `scipy.optimize` takes longer to load.
    """
    count = matrix.shape[1]
    best, least = np.zeros(count), float(target @ target)
    for size in range(1, count + 1):
        for used in map(list, combinations(range(count), size)):
            inverse = np.linalg.pinv(matrix[:, used])
            free = inverse @ target
            # Once more for what rounding left: points on a law have its very numbers.
            free += inverse @ (target - matrix[:, used] @ free)
            rest = matrix[:, used] @ free - target
            if (free >= 0).all() and float(rest @ rest) < least:
                best, least = np.zeros(count), float(rest @ rest)
                best[used] = free
    return best
