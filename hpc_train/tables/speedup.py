"""Run table -> one row per point with speedup and efficiency against its series' baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.tables.against import against
from hpc_train.tables.cost import price_per_million
from hpc_train.tables.flags import point_flags
from hpc_train.tables.intervals import CONFIDENCE
from hpc_train.tables.points import KEY, RATES, bases_of, grouped, point_columns, rates_of
from hpc_train.tables.regime import regimes

LIMITS = ("", "_low", "_high")
COUNTS = (*KEY[1:], "cpus_per_task", "n_ok", "n_submitted", "steps", "warmup_steps")
COLUMNS = (
    *KEY, "cpus_per_task", "regime", "basis", "is_baseline", "global_batch", "n_ok",
    "n_submitted", "not_ok", "steps", "warmup_steps",
    *(f"step_time_s{limit}" for limit in LIMITS),
    "step_p05_s", "step_p25_s", "step_p75_s", "step_p95_s", "epoch_time_s",
    *(f"samples_per_second{limit}" for limit in LIMITS),
    "samples_per_second_per_rank", "tokens_per_second", "ideal",
    *(f"speedup{limit}" for limit in LIMITS), *(f"efficiency{limit}" for limit in LIMITS),
    *(f"doubling{limit}" for limit in LIMITS), *(f"karp_flatt{limit}" for limit in LIMITS),
    *(f"time_to_train_speedup{limit}" for limit in LIMITS),
    *(f"time_to_train_efficiency{limit}" for limit in LIMITS),
    "cv", "accuracy", "accuracy_change_pp", "learning_rate", "optimiser_steps", "samples_seen",
    "first_step_time_s", "time_to_train_s", "wall_s", "gpu_hours_per_million",
    "node_hours_per_million", "gpu_hours_spent", "cost_per_million", "mfu", "memory_gib",
    "data_share", "communication_share", "whole_seconds", "transport", "confidence", "flags",
    "note",
)  # fmt: skip
OTHERS = (
    "series", "regime", "basis", "is_baseline", "not_ok", "whole_seconds", "transport", "flags",
    "note",
)  # fmt: skip
FLOATS = tuple(name for name in COLUMNS if name not in (*COUNTS, *OTHERS))


def speedup_frame(
    runs: pd.DataFrame, study: ExpectedStudy, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """Return one row per point (series, nodes, GPUs and tasks per node), from `run_frame`'s rows.

    speedup S = X(p)/X(p0) of throughput, else T(p0)/T(p) of epoch time, else of time to train;
    ideal q = ratio of GPUs, of ranks where there are none; efficiency E = S/q, for strong and weak
    scaling alike. The baseline is 1 exactly, without an interval. Where the baseline has no ok run,
    or the regime is mixed, S and E are NaN and `note` says why. `time_to_train_speedup` is the
    ratio of the times to train, which is defined even if batches change. `doubling` S(2p)/(2 S(p))
    is a direct ratio of two points, the point of half the size being of the same series.

    Raises:
        ReportError: the recorded batches contradict `study.scaling`.
    """
    found = regimes(runs, study.scaling)
    groups = grouped(runs)
    rates = rates_of(groups)
    bases = bases_of(groups, rates)
    columns = point_columns(groups, rates, confidence)
    columns["regime"] = [found[groups.labels[series]] for series in groups.of_point]
    columns["basis"] = [bases[series] for series in groups.of_point]
    columns["whole_seconds"] &= ~np.isin(columns["basis"], RATES)
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
