"""Run table -> one row per point with speedup and efficiency against its series' baseline."""

from __future__ import annotations

from typing import Any, NamedTuple

import pandas as pd

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.tables.baseline import SIZE_ORDER, baseline_key, with_key
from hpc_train.tables.flags import point_flags
from hpc_train.tables.intervals import CONFIDENCE, Interval, ratio_interval
from hpc_train.tables.points import KEY, basis_of, not_ok, point_row, rates
from hpc_train.tables.regime import derive_regime
from hpc_train.tables.runs import OK
from hpc_train.tables.steps import NAN

LIMITS = ("", "_low", "_high")
COUNTS = (*KEY[1:], "gpus", "cpus_per_task", "n_ok", "n_submitted", "steps", "warmup_steps")
COLUMNS = (
    *KEY, "gpus", "cpus_per_task", "regime", "basis", "is_baseline", "global_batch", "n_ok",
    "n_submitted", "not_ok", "steps", "warmup_steps", "step_time_s", "epoch_time_s",
    "samples_per_second", "samples_per_second_low", "samples_per_second_high",
    "samples_per_second_per_rank", "tokens_per_second", "ideal",
    *(f"speedup{limit}" for limit in LIMITS),
    *(f"efficiency{limit}" for limit in LIMITS), "cv", "accuracy", "accuracy_change_pp",
    "first_step_time_s", "time_to_train_s", "whole_seconds", "transport", "confidence",
    "flags", "note",
)  # fmt: skip
OTHERS = (
    "series", "regime", "basis", "is_baseline", "not_ok", "whole_seconds", "transport", "flags",
    "note",
)  # fmt: skip
FLOATS = tuple(name for name in COLUMNS if name not in (*COUNTS, *OTHERS))


class Baseline(NamedTuple):
    """All runs of the point that counts as 1, its row, and why it cannot be used, if so."""

    runs: pd.DataFrame | None
    row: dict[str, Any]
    note: str


def speedup_frame(
    runs: pd.DataFrame, study: ExpectedStudy, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """Return one row per point (series, nodes, GPUs and tasks per node), from `run_frame`'s rows.

    speedup S = X(p)/X(p0) of throughput, else T(p0)/T(p) of epoch time, else of time to train;
    ideal q = ratio of GPUs, of ranks where there are none; efficiency E = S/q, for strong and weak
    scaling alike. The baseline is 1 exactly, without an interval. Where the baseline has no ok run,
    or the regime is mixed, S and E are NaN and `note` says why.

    Raises:
        ReportError: the recorded batches contradict `study.scaling`.
    """
    regime = derive_regime(runs, study.scaling)
    rows: list[dict[str, Any]] = []
    for series, group in runs.groupby("series", sort=False):
        basis = basis_of(group[group["state"] == OK])
        base = _baseline(runs, str(series), study, basis, confidence)
        if regime == "mixed":
            base = Baseline(None, {}, "no speedup: batch and size change together (regime mixed)")
        for _, point in group.groupby(KEY, dropna=False, sort=False):
            row = point_row(point, basis, confidence) | {"regime": regime, "note": base.note}
            row |= _compared(row, point, base, confidence)
            row["confidence"] = confidence
            row["flags"] = point_flags(row, point, base.runs, study.gates.efficiency)
            rows.append(row)
    frame = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
    floats = frame[list(FLOATS)].apply(pd.to_numeric, errors="coerce")
    frame = frame.assign(**floats).astype(
        {**dict.fromkeys(COUNTS, "Int64"), **dict.fromkeys(FLOATS, "float64")}
    )
    order = pd.Categorical(frame["series"], list(dict.fromkeys(frame["series"])), ordered=True)
    sizes = frame.assign(_series=order).sort_values(["_series", *SIZE_ORDER], kind="stable")
    ordered: pd.DataFrame = sizes.drop(columns="_series").reset_index(drop=True)
    return ordered


def _baseline(
    runs: pd.DataFrame, series: str, study: ExpectedStudy, basis: str, confidence: float
) -> Baseline:
    key = baseline_key(runs, series, study.baseline)
    if key is None:
        wanted = ", ".join(f"{name}={value}" for name, value in study.baseline.items())
        return Baseline(None, {}, f"no speedup: no point has the baseline's values ({wanted})")
    own = with_key(runs, key)
    if not rates(own[own["state"] == OK], basis):
        states = not_ok(own["state"].tolist()) or f"none with {basis}"
        where = ", ".join(own["run_id"].astype(str))
        return Baseline(None, {}, f"no speedup: the baseline has no ok run ({states}: {where})")
    return Baseline(own, point_row(own, basis, confidence), "")


def _compared(
    row: dict[str, Any], runs: pd.DataFrame, base: Baseline, confidence: float
) -> dict[str, Any]:
    compared: dict[str, Any] = {"is_baseline": False, "ideal": NAN, "accuracy_change_pp": NAN}
    speedup: tuple[float | None, ...] = (NAN, None, None)
    if base.runs is not None:
        compared["is_baseline"] = runs.index.equals(base.runs.index)
        compared["ideal"] = ideal(row, base.row)
        compared["accuracy_change_pp"] = 100 * (row["accuracy"] - base.row["accuracy"])
        speedup = _speedup(runs, base.runs, row["basis"], confidence)
        if compared["is_baseline"]:
            speedup = (1.0, None, None)
    for limit, value in zip(LIMITS, speedup, strict=True):
        compared[f"speedup{limit}"] = value
        compared[f"efficiency{limit}"] = None if value is None else value / compared["ideal"]
    return compared


def _speedup(
    runs: pd.DataFrame, base: pd.DataFrame, basis: str, confidence: float
) -> Interval | tuple[float, None, None]:
    own = rates(runs[runs["state"] == OK], basis)
    first = rates(base[base["state"] == OK], basis)
    return ratio_interval(own, first, confidence) if own else (NAN, None, None)


def ideal(row: dict[str, Any], base: dict[str, Any]) -> float:
    """Return q, the ratio of GPUs; else of ranks, else of nodes; NaN where none is known."""
    for name in ("gpus", "ranks", "nodes"):
        own, first = row[name], base[name]
        if pd.notna(own) and pd.notna(first) and own > 0 and first > 0:
            return float(own / first)
    return NAN
