"""Records -> the runs whose loss is NaN or infinite at their end."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hpc_train.tables.columns import Columns, Ints
from hpc_train.tables.groups import packed


def without_final_loss(fields: Columns, runs: int) -> Ints:
    """Return the runs of which a log states a loss that is no number, and no other one after it.

    A loss that came back is none: mixed precision skips steps that overflow.
    """
    lost = (fields.metric.among(["not_finite"]) == 0) & (fields.variant.among(["loss"]) == 0)
    if not lost.any():
        return np.array([], dtype=np.int64)
    stated = (fields.metric.among(["loss"]) == 0) & (fields.variant.among([""]) == 0)
    places = np.flatnonzero((lost | stated) & (fields.run.codes < runs))
    key = pd.Series(packed(fields.run.codes[places], fields.source.codes[places]))
    last = places[~key.duplicated(keep="last").to_numpy()]
    return np.unique(fields.run.codes[last[lost[last]]].astype(np.int64))
