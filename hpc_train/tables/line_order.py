"""Values of hand-written lines that name no step -> numbered in the order of their log."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hpc_train.tables.measurements import KINDS, Rows
from hpc_train.tables.record_arrays import RecordArrays
from hpc_train.tables.row_codes import packed

_HAND_WRITTEN = "generic"
_REPEATED = ("step_time", "epoch_time", "samples_per_second", "tokens_per_second")


def in_line_order(fields: RecordArrays, rows: Rows) -> Rows:
    """Return the rows with a number for each of several values of one metric of a log.

    Such rows are `numbered`: 1 is the first value that was printed, which may be that of step 10.
    A single value stays that of the whole run, and a log that names steps is not changed.
    """
    guessed = fields.parser.among([_HAND_WRITTEN])[rows.place] == 0
    if not guessed.any():
        return rows
    repeated = np.isin(rows.kind, [KINDS.index(name) for name in _REPEATED])
    own = np.flatnonzero(guessed & repeated)
    if not len(own):
        return rows
    source = fields.source.codes[rows.place[own]]
    key = pd.Series(packed(rows.kind[own], rows.run[own], rows.scope[own], source, rows.rank[own]))
    groups = key.groupby(key, sort=False)
    named = pd.Series(rows.stepped[own]).groupby(key, sort=False).transform("any").to_numpy()
    chosen = (groups.transform("size").to_numpy() > 1) & ~named
    step, numbered = rows.step.copy(), rows.numbered.copy()
    step[own[chosen]] = 1 + groups.cumcount().to_numpy()[chosen]
    numbered[own[chosen]] = True
    return rows._replace(step=step, numbered=numbered)
