"""Input of figures: the tables of a study, and the laws fitted to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hpc_train.model.law import Fit

if TYPE_CHECKING:
    import pandas as pd


class Measured(NamedTuple):
    """One row per run, per point, and per run and node; and the laws of each series."""

    runs: pd.DataFrame
    points: pd.DataFrame
    laws: tuple[Fit, ...]
    nodes: pd.DataFrame
