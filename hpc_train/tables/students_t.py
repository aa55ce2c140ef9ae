"""Degrees of freedom -> the quantile of Student's t that an interval is wide."""

from __future__ import annotations

from typing import Any

# Not scipy.stats, which takes a second to load for one function.
from scipy import special


def students_t(freedom: Any, confidence: float) -> Any:
    """Return t such that a share `confidence` of the distribution is within -t and t."""
    return special.stdtrit(freedom, (1 + confidence) / 2)
