"""Measurements of one run that are not steps: summaries, epochs, what the run says of itself."""

from __future__ import annotations

import pandas as pd

from hpc_train.model.study import Warmup
from hpc_train.tables.steps import NAN, measured, step_totals

WHOLE_SECONDS_PARSERS = frozenset({"book"})
# Programs that name the rank in each epoch's line, except where one process runs alone.
ALONE_PARSERS = frozenset({"book"})


def final(table: pd.DataFrame, metric: str) -> float | None:
    """Return the last value of a global metric, however many ranks printed it; None without."""
    rows = _rows(table, metric)
    return float(rows["value"].iloc[-1]) if len(rows) else None


def named_ranks(table: pd.DataFrame) -> int | None:
    """Return the number of ranks as far as the lines name them; None where they name none.

    That rank 0 alone speaks for the whole job does not say that it is the only one.
    """
    highest = table["rank"].max()
    speakers = table["scope"][table["rank"].notna()]
    if pd.notna(highest) and (highest > 0 or (speakers != "global").any()):
        return int(highest) + 1
    epochs = table[table["metric"] == "epoch_time"]
    alone = len(epochs) and epochs["parser"].isin(sorted(ALONE_PARSERS)).all()
    return 1 if alone else None


def accuracy(table: pd.DataFrame) -> float | None:
    """Return the last accuracy of the job; where each rank has its own, the mean of their last."""
    rows = _rows(table, "accuracy")
    whole = rows[rows["scope"] == "global"]
    if len(whole) or rows.empty:
        return final(table[table["scope"] == "global"], "accuracy")
    return float(rows.groupby("who")["value"].last().mean())


def contradictions(table: pd.DataFrame, metric: str) -> tuple[float, ...]:
    """Return the different values of a metric that a run can only have once; () when it agrees."""
    rows = _rows(table, metric)
    if len(rows) < 2:
        return ()
    distinct = rows[rows["step"].isna()]["value"].drop_duplicates()
    return tuple(float(value) for value in distinct) if len(distinct) > 1 else ()


def slowest(table: pd.DataFrame, metric: str) -> float | None:
    """Return a time [s] as the slowest rank saw it; None without."""
    rows = _rows(table, metric)
    return float(rows["value"].max()) if len(rows) else None


def stated_step_time_s(table: pd.DataFrame) -> float:
    """Return the step time [s] that somebody states of a whole run; NaN without."""
    stated = table[(table["metric"] == "step_time") & (table["scope"] == "global")]
    return float(stated["value"].iloc[-1]) if len(stated) else NAN


def epoch_time_s(table: pd.DataFrame) -> float | None:
    """Return the mean over epochs of the slowest rank's time [s], without the first of several."""
    rows = _rows(table, "epoch_time")
    if rows.empty:
        return None
    epochs = rows.groupby("step", dropna=False)["value"].max()
    return float(epochs.iloc[1:].mean() if len(epochs) > 1 else epochs.iloc[0])


def whole_seconds(table: pd.DataFrame) -> bool:
    """Whether the times of this run were cut to whole seconds before they were printed."""
    rows = table[table["metric"].isin(["epoch_time", "time_to_train"])]
    return bool(rows["parser"].isin(sorted(WHOLE_SECONDS_PARSERS)).any())


def reported_rate(table: pd.DataFrame, metric: str, warmup: Warmup, ranks: int | None) -> float:
    """Return the throughput [1/s] of all ranks that the run itself printed, NaN without.

    Rates per step: harmonic mean after the warm-up (Hoefler and Belli, SC15, rule 4). Else the
    global summary, once; else the mean per GPU times the ranks; else the sum over the ranks, if
    every rank printed one.
    """
    stepwise = step_totals(table, metric, ranks)
    if len(stepwise):
        rates = stepwise[measured(stepwise * 0, Warmup(steps=warmup.steps))]
        return float(1 / (1 / rates).mean()) if len(rates) and bool((rates > 0).all()) else NAN
    rows = _rows(table, metric)
    if bool((rows["scope"] == "global").any()):
        return float(rows[rows["scope"] == "global"]["value"].iloc[-1])
    each = rows[rows["scope"] == "per_gpu"]
    if len(each):
        return float(each.groupby("who")["value"].last().mean()) * (ranks or NAN)
    per_rank = rows.groupby("who")["value"].last()
    return float(per_rank.sum()) if len(per_rank) and len(per_rank) == ranks else NAN


def _rows(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    rows: pd.DataFrame = table[table["metric"] == metric]
    if len(rows) < 2:
        return rows
    ordered: pd.DataFrame = rows.sort_values("step", kind="stable", na_position="last")
    return ordered
