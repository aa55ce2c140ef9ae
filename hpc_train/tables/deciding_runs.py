"""Run table -> the runs on which a gate depends."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hpc_train.model.quality_flag import LOSS_LOST
from hpc_train.tables.group_reductions import numbers
from hpc_train.tables.points import KEY
from hpc_train.tables.row_codes import codes
from hpc_train.tables.runs import OK

# Of the other runs a gate counts none, one or several.
_COUNTED = 2


def deciding(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that are not ok, those with an accuracy or a loss, and two of each point.

    The gates of accuracy and loss compare runs, and `missing` those that are not ok; of all others
    they need to know only whether a point has one of them, or several.
    """
    ok = (runs["state"] == OK).to_numpy(dtype=bool)
    rated = ~np.isnan(numbers(runs, "accuracy")) | ~np.isnan(numbers(runs, "loss"))
    rated |= np.array([LOSS_LOST in flags for flags in runs["flags"]], dtype=bool)
    place = codes([runs[name] for name in KEY])
    few = np.zeros(len(runs), dtype=bool)
    for _ in range(_COUNTED):
        others = np.flatnonzero(ok & ~few)
        few[others[~pd.Series(place[others]).duplicated().to_numpy()]] = True
    found: pd.DataFrame = runs[~ok | rated | few]
    return found
