"""Quantities of a point as functions of numbers or arrays, NaN where they are not defined."""

from __future__ import annotations

import numpy as np

from hpc_train.tables.moments import Floats
from hpc_train.tables.steps import NAN

MILLION = 1e6
HOUR_S = 3600.0


def doubling_efficiency(speedup: float | Floats, doubled: Floats) -> Floats:
    """Return S(2p)/(2 S(p)): what the second half of the resources adds; CSC asks for 0.75."""
    return doubled / (2 * speedup)


def karp_flatt(speedup: Floats, q: Floats) -> Floats:
    """Return e = (1/S - 1/q)/(1 - 1/q), the serial fraction that was measured, for q > 1.

    (A. H. Karp and H. P. Flatt, CACM 33(5), 1990.) It falls as S rises.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(q > 1, (1 / speedup - 1 / q) / (1 - 1 / q), NAN)


def hours_per_million(units: Floats, samples_per_second: Floats) -> Floats:
    """Return 1e6 p/(3600 X): GPU- or node-hours for a million samples at a steady rate."""
    return np.where(units > 0, units, NAN) * (MILLION / HOUR_S) / samples_per_second
