"""Point table -> laws of scaling fitted to each series."""

from __future__ import annotations

import pandas as pd

from hpc_train.model.law import Fit


def fits(
    points: pd.DataFrame, forecast: float | None = None, *, force: bool = False
) -> tuple[Fit, ...]:
    """Fit Amdahl's, Gustafson's and Gunther's laws to each series of a point table.

    Raises:
        ReportError: a forecast beyond twice the largest measured size, without `force`.
    """
    return ()
