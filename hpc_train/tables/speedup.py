"""Run table -> one row per point with speedup and efficiency against its series' baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.model.metrics import BASES, POINT_METRICS
from hpc_train.tables.against import against
from hpc_train.tables.cost import price_per_million
from hpc_train.tables.flags import point_flags
from hpc_train.tables.intervals import CONFIDENCE
from hpc_train.tables.points import KEY, bases_of, grouped, point_columns, rates_of
from hpc_train.tables.regime import regimes

COUNTS = (
    *KEY[1:], "cpus_per_task", "n_ok", "n_submitted",
    *(metric.key for metric in POINT_METRICS if metric.counts),
)  # fmt: skip
# The size of the work stands before the runs, as in the points table.
_BATCH, *_OTHERS = (
    f"{metric.key}{limit}"
    for metric in POINT_METRICS
    for limit in (("", "_low", "_high") if metric.limits else ("",))
)
COLUMNS = (
    *KEY, "cpus_per_task", "regime", "basis", "is_baseline", _BATCH, "n_ok", "n_submitted",
    "not_ok", *_OTHERS, "whole_seconds", "transport", "confidence", "flags", "note",
)  # fmt: skip
FLOATS = tuple(name for name in (_BATCH, *_OTHERS, "confidence") if name not in COUNTS)


def speedup_frame(
    runs: pd.DataFrame, study: ExpectedStudy, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """Return one row per point (series, nodes, GPUs and tasks per node), from `run_frame`'s rows.

    speedup S = X(p)/X(p0) of throughput, else T(p0)/T(p) of epoch time, else of time to train;
    ideal q = ratio of GPUs, of ranks where there are none; efficiency E = S/q, for strong and weak
    scaling alike. The baseline is 1 exactly, without an interval. Where the baseline has no ok run,
    or the regime is mixed, S and E are NaN and `note` says why. `time_to_train_speedup` is the
    ratio of the times to train, which batches that change do not forbid. `doubling` S(2p)/(2 S(p))
    is a direct ratio of two points, the point of half the size being of the same series.

    Raises:
        ReportError: the recorded batches contradict `study.scaling`.
    """
    found = regimes(runs, study.scaling)
    groups = grouped(runs)
    rates = rates_of(groups)
    bases = bases_of(groups, rates)
    columns = point_columns(groups, confidence)
    columns["regime"] = [found[groups.labels[series]] for series in groups.of_point]
    columns["basis"] = [bases[series] for series in groups.of_point]
    times = [not BASES[name].is_rate for name in columns["basis"]]
    columns["whole_seconds"] &= np.array(times, dtype=bool)
    columns["confidence"] = np.full(groups.size, confidence)
    per_million = columns["gpu_hours_per_million"]
    columns["cost_per_million"] = price_per_million(per_million, study.price_per_gpu_hour)
    compared = against(groups, study, rates, columns)
    columns |= compared.columns
    columns["flags"] = point_flags(groups, columns, compared.base, study.gates.efficiency)
    return _typed(columns)


def _typed(columns: dict[str, Any]) -> pd.DataFrame:
    types = {**dict.fromkeys(COUNTS, "Int64"), **dict.fromkeys(FLOATS, "float64")}
    # A list of tuples of one length would become columns.
    flags = pd.Series(columns["flags"], dtype=object)
    frame: pd.DataFrame = pd.DataFrame({**columns, "flags": flags}, columns=pd.Index(COLUMNS))
    typed: pd.DataFrame = frame.astype(types)
    return typed
