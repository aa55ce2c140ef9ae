"""A planned study -> the resolution of its repetitions, and the laws that can be fitted.

Fast to import, because `submit` prints this on a login node.
"""

from __future__ import annotations

from math import sqrt

from hpc_train.model.scaling_fit import LEAST_SIZES, Law

# Expected half width of the 95 % interval of a ratio, n jobs against n, at 2 % noise, computed once
# (tests/tables/resolution.py); beyond the last, widths shrink as 1/sqrt(n).
WIDTHS = {
    2: 0.1388, 3: 0.0494, 4: 0.0354, 5: 0.0293, 6: 0.0257, 7: 0.0232, 8: 0.0213, 9: 0.0199,
    10: 0.0187, 11: 0.0177, 12: 0.0168, 13: 0.0161, 14: 0.0154, 15: 0.0149, 16: 0.0144, 17: 0.0139,
    18: 0.0135, 19: 0.0131, 20: 0.0127,
}  # fmt: skip
LARGEST = max(WIDTHS)


def expected_width(n: int) -> float | None:
    """Return the expected half width of a ratio's interval as a share of it; None for n < 2."""
    if n < 2:
        return None
    return WIDTHS.get(n) or WIDTHS[LARGEST] * sqrt(LARGEST / n)


def fit_needs(sizes: int) -> dict[Law, int]:
    """Return the laws that need more different sizes, and the number that each needs."""
    return {law: least for law, least in LEAST_SIZES.items() if sizes < least}
