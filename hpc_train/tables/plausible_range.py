"""The range of measurements: outside it squares, sums and ratios may overflow."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

# A product or a ratio of any two, and the square of a sum, are still numbers.
LEAST, MOST = 1e-100, 1e100
Formula = TypeVar("Formula", bound=Callable[..., Any])


def usable(values: Any) -> NDArray[np.bool_]:
    """Return which values are usable: finite, and within the range of measurements."""
    sizes = np.abs(values)
    sound: NDArray[np.bool_] = (sizes == 0) | ((sizes >= LEAST) & (sizes <= MOST))
    return sound


def known(values: Any) -> Any:
    """Return the values, with NaN for those that are not usable."""
    return np.where(usable(values), values, np.nan)


def positive(rates: Any) -> NDArray[np.float64]:
    """Return the rates, with NaN for those that are not usable or not above 0."""
    return np.where((rates > 0) & usable(rates), rates, np.nan)


def bounded(formula: Formula) -> Formula:
    """Return a formula whose result is NaN, without a warning, outside the range of measurements.

    NaN means unknown: a missing value in a report, never a wrong number.
    """

    @wraps(formula)
    def quiet(*values: Any, **named: Any) -> Any:
        with np.errstate(all="ignore"):
            found = known(formula(*values, **named))
        return found if found.ndim else float(found)

    return cast("Formula", quiet)
