"""Values of runs -> the columns of the run table, each of its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.model.metrics import RUN_METRICS
from hpc_train.tables.group_reductions import NAN
from hpc_train.tables.record_arrays import Ints
from hpc_train.tables.shared_objects import Shared

COUNTS = ("nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus", "cpus_per_task")
_WHOLE = (*COUNTS, "repetition", *(metric.key for metric in RUN_METRICS if metric.counts))
_FLOATS = ("started", *(metric.key for metric in RUN_METRICS if not metric.counts))


def axis_column(values: Sequence[Any], kind: Ints) -> Any:
    """Return the values of an axis; a number remains one."""
    if all(value is None or isinstance(value, str) for value in values):
        return Shared(values, kind).column()
    return Shared([NAN if value is None else value for value in values], kind).spread()


def typed_column(name: str, values: Any) -> Any:
    if name in _WHOLE:
        return pd.array(_each(values), dtype="Int64")
    if name in _FLOATS:
        return np.asarray(_each(values), dtype=np.float64)
    return values.column() if isinstance(values, Shared) else values


def without_values(values: Any) -> Any:
    """Return a column of floats without a value as one that is NaN in one place of memory."""
    if values.dtype != np.float64 or not np.isnan(values).all():
        return values
    return np.broadcast_to(NAN, len(values))


def _each(values: Any) -> Any:
    return values.each(lambda value: value) if isinstance(values, Shared) else values
