"""Runs -> one row per point: how many runs it has, and the means of those that are ok."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from hpc_train.tables.intervals import harmonic_interval
from hpc_train.tables.runs import OK
from hpc_train.tables.steps import NAN

# The number of ranks tells points apart only where nobody recorded nodes and tasks.
KEY = ["series", "nodes", "gpus_per_node", "tasks_per_node", "ranks"]
BASES = {
    "throughput": "samples_per_second",
    "token throughput": "tokens_per_second",
    "epoch time": "epoch_time_s",
    "time to train": "time_to_train_s",
}
RATES = ("throughput", "token throughput")
MEANS = ("step_time_s", "epoch_time_s", "time_to_train_s", "first_step_time_s", "accuracy")


def basis_of(ok: pd.DataFrame) -> str:
    """Return the quantity that a series is compared by: one for all its runs, never a mix.

    The first of throughput (in samples, in tokens), epoch time and time to train that every ok run
    has; failing that, the first that any has.
    """
    usable = {basis: rates(ok, basis) for basis in BASES}
    for basis, values in usable.items():
        if len(values) and len(values) == len(ok):
            return basis
    return next((basis for basis, values in usable.items() if len(values)), "throughput")


def rates(ok: pd.DataFrame, basis: str) -> list[float]:
    """Return what speedup is the ratio of: throughputs, or one over the times; positive only."""
    values = ok[BASES[basis]]
    usable = values[values > 0]
    return (usable if basis in RATES else 1 / usable).tolist()


def point_row(runs: pd.DataFrame, basis: str, confidence: float) -> dict[str, Any]:
    """Return the row of one point from all its runs, without what needs a baseline.

    Means over runs are arithmetic for times and harmonic for rates (Hoefler and Belli, SC15).
    `cv` is the coefficient of variation between the runs, of the basis.
    """
    ok = runs[runs["state"] == OK]
    first = runs.iloc[0]
    row: dict[str, Any] = {name: first[name] for name in (*KEY, "cpus_per_task")}
    row["gpus"] = first["nodes"] * first["gpus_per_node"]
    row["basis"] = basis
    row["global_batch"] = _only(ok["global_batch"])
    row["n_ok"], row["n_submitted"] = len(ok), len(runs)
    row["not_ok"] = not_ok(runs["state"].tolist())
    row["steps"] = ok["steps"].min() if len(ok) else None
    row["warmup_steps"] = ok["warmup_steps"].max() if len(ok) else None
    row.update({name: ok[name].mean() for name in MEANS})
    throughput = rates(ok, "throughput")
    names = ("samples_per_second", "samples_per_second_low", "samples_per_second_high")
    interval = harmonic_interval(throughput, confidence) if throughput else (NAN, None, None)
    row.update(zip(names, interval, strict=True))
    tokens = rates(ok, "token throughput")
    row["tokens_per_second"] = harmonic_interval(tokens, confidence)[0] if tokens else NAN
    row["samples_per_second_per_rank"] = row["samples_per_second"] / first["ranks"]
    row["cv"] = _cv(rates(ok, basis))
    row["whole_seconds"] = basis not in RATES and bool(ok["whole_seconds"].any())
    return row


def not_ok(states: Sequence[str]) -> str:
    """Return `1 FAILED, 2 MISSING`; nothing when all are ok."""
    counts = pd.Series([state for state in states if state != OK], dtype=object).value_counts()
    return ", ".join(f"{counts[state]} {state}" for state in sorted(counts.index))


def _only(values: pd.Series[float]) -> float:
    return float(values.iloc[0]) if values.nunique() == 1 else NAN


def _cv(values: list[float]) -> float:
    series = pd.Series(values, dtype="float64")
    return float(series.std(ddof=1) / series.mean()) if len(series) > 1 else NAN
