"""Values of runs -> the columns of the run table, each of its type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hpc_train.model.metrics import RUN_METRICS

COUNTS = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus", "cpus_per_task")
_WHOLE = (*COUNTS, "repetition", *(metric.key for metric in RUN_METRICS if metric.counts))
_FLOATS = ("started", *(metric.key for metric in RUN_METRICS if not metric.counts))


def typed_column(name: str, values: Any) -> Any:
    """Return a column of the run table: whole numbers, floats, or objects."""
    if name in _WHOLE:
        return pd.array(values, dtype="Int64")
    if name in _FLOATS:
        return np.asarray(values, dtype=np.float64)
    if isinstance(values, np.ndarray):
        return values
    # A list of tuples or dicts would become several columns.
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return pd.Series(found, dtype=object)
