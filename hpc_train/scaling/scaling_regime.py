"""Runs -> scaling regime of each series from recorded batches, checked against the declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import BASES
from hpc_train.jobs.study import Scaling
from hpc_train.scaling.group_reductions import Floats, agree, moments, numbers
from hpc_train.scaling.points import TO_TRAIN, Grouped
from hpc_train.scaling.runs import OK

# A larger difference means another batch, for any number of ranks.
ROUNDED = 0.01
# A time of at least this share of the baseline's at twice its size or more hardly changes.
STEADY = 0.8
_LABEL = "axis.scaling"
Regime = Literal["strong", "weak", "mixed", "unknown"]


def work_units(
    groups: Grouped, basis: Sequence[str], declared: Scaling | None, assumed: str = ""
) -> dict[str, Any]:
    """Return the unit of work of each point: that of a rate, or what its time is measured for.

    The columns are `regime`; `work`, that of the point in the units of the smallest size, 1 or its
    number of ranks; `assumption`, what the speedup takes for granted; and `looks_weak`, whether the
    times contradict it. `assumed` is how the values were read.

    A step is the global batch (strong scaling) or the batch of each rank (weak scaling): recorded,
    else declared, else the global batch is assumed. An epoch is all data, and a training the same
    training, also if the batch grows with the ranks.

    Raises:
        ReportError: see `regimes`.
    """
    recorded = regimes(groups.runs, declared)
    gpus, ranks, nodes = groups.sizes
    size = np.where(ranks > 0, ranks, np.where(gpus > 0, gpus, nodes))
    times = moments(groups.ok_only("step_time_s"), groups.point, groups.size).mean
    rows: list[tuple[str, float, str, bool]] = [("unknown", 1.0, "", False)] * groups.size
    for series, own in pd.Series(groups.of_point).groupby(groups.of_point).indices.items():
        timed, regime = BASES[basis[own[0]]], recorded[groups.labels[series]]
        known = regime != "unknown"
        if not (known or timed.is_rate):
            regime = declared or ("strong" if timed.per_step else "unknown")
        grows = regime == "weak" and timed.per_step
        same = "the same batch per rank" if grows else f"the same {timed.same} at every size"
        text = f"assuming {same}"
        if timed.is_rate or (timed.per_step and known):
            text = ""
        elif timed.per_step and declared:
            text = f"with {same}, as declared"
        if regime == "mixed" and basis[own[0]] == TO_TRAIN:
            text = f"by the time to train, as batch and size change together, {text}"
        text = ", ".join(filter(None, (text, assumed)))
        looks_weak = timed.per_step and _is_steady(times[own], size[own])
        looks_weak = looks_weak and not (known or declared)
        for point in own.tolist():
            rows[point] = (regime, size[point] if grows else 1.0, text, looks_weak)
    names = ("regime", "work", "assumption", "looks_weak")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))
    return {name: columns.get(name, []) for name in names} | {
        "work": np.array(columns.get("work", []), dtype=np.float64)
    }


def _is_steady(times: Floats, size: Floats) -> bool:
    """Whether the time at the largest size of a series is about that at its smallest."""
    places = np.flatnonzero(~np.isnan(times + size))
    if not len(places):
        return False
    least, most = (places[pick(size[places])] for pick in (np.argmin, np.argmax))
    return bool(size[most] >= 2 * size[least] and times[most] >= STEADY * times[least])


def regimes(runs: pd.DataFrame, declared: Scaling | None = None) -> dict[str, Regime]:
    """Return the regime of each series, from the global batch and ranks of its completed runs.

    strong: the same global batch at every size, except for rounding to whole samples per rank (999
    of 1000 on 3); weak: the same batch per rank; mixed: neither; unknown: not recorded, or the
    series has one size and the other series differ in regime.

    Raises:
        ReportError: the data contradict `declared`; names two runs and their batches. Where an axis
            is called `scaling`, its values are declarations of their runs.
    """
    if declared is None and _LABEL in runs:
        for label in get_args(Scaling):
            regimes(runs[runs[_LABEL] == label], label)
    # A table may have only a column of nodes.
    sizes = "nodes" if runs["ranks"].isna().all() else "ranks"
    own = runs[["run_id", "series", "state"]].assign(
        batch=numbers(runs.assign(batch=batch_column(runs)), "batch"), ranks=numbers(runs, sizes)
    )
    own = own[own["state"] == OK].dropna(subset=["batch", "ranks"])
    found: dict[str, Regime] = {str(label): "unknown" for label in runs["series"].unique()}
    for label, part in own.groupby("series", sort=False):
        found[str(label)] = _regime(part["batch"].to_numpy(), part["ranks"].to_numpy())
    seen = {*found.values()} - {"unknown"}
    wrong = sorted(seen - {declared}) if declared else []
    if declared and wrong:
        shown = wrong[0] if len(seen) == 1 else "mixed"
        hint = "make the batch size an axis, or submit one study per regime"
        if shown != "mixed":
            hint = f"report --scaling {shown}, or `scaling: {shown}` in the study"
        raise ReportError(_contradiction(own, declared, shown), hint)
    common: Regime = seen.pop() if len(seen) == 1 else "unknown"
    if common == "mixed":
        common = "unknown"
    return {label: common if regime == "unknown" else regime for label, regime in found.items()}


def batch_column(runs: pd.DataFrame) -> pd.Series:
    """Return the samples of a step of all ranks, else its tokens."""
    found: pd.Series = runs["global_batch"]
    return found.fillna(runs["tokens_per_step"]) if "tokens_per_step" in runs else found


def batches(own: pd.DataFrame) -> str:
    """Return `64 in run a, 96 in run b` for the different global batches, three at most."""
    own = own.assign(global_batch=batch_column(own))
    known = own[(own["state"] == OK) & own["global_batch"].notna()]
    each = known.drop_duplicates("global_batch")
    pairs = each[["global_batch", "run_id"]].head(3).itertuples(index=False)
    return ", ".join([*(f"{batch:g} in {run}" for batch, run in pairs), *["…"] * (len(each) > 3)])


def _regime(batch: Floats, ranks: Floats) -> Regime:
    low, high, share = batch.min(), batch.max(), batch / ranks
    # Equal up to rounding in each rank.
    rounded = (high - batch < ranks).all() or (batch - low < ranks).all()
    one_batch = agree(low, high) or (rounded and high - low <= ROUNDED * high)
    if agree(ranks.min(), ranks.max()):
        return "unknown" if one_batch else "mixed"
    if one_batch:
        return "strong"
    return "weak" if agree(share.min(), share.max()) else "mixed"


def _contradiction(known: pd.DataFrame, declared: Scaling, regime: str) -> str:
    column = known["batch"] if declared == "strong" else known["batch"] / known["ranks"]
    what = "global batch" if declared == "strong" else "batch per rank"
    for _, group in known.assign(work=column).groupby("series", sort=False):
        values, names = group["work"].to_numpy(), group["run_id"].tolist()
        differ = ~agree(np.minimum(values, values[0]), np.maximum(values, values[0]))
        if differ.any():
            other = int(np.argmax(differ))
            return (
                f"declared {declared} scaling, but the data are {regime}: {what} is "
                f"{values[0]:g} in {names[0]} and {values[other]:g} in {names[other]}"
            )
    return f"declared {declared} scaling, but the data are {regime}"
