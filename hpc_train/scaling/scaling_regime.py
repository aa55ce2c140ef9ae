"""Runs -> scaling regime of each series from recorded batches, checked against the declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import BASES, Basis
from hpc_train.jobs.study import Scaling
from hpc_train.scaling.group_reductions import Floats, agree, least, moments, most, numbers
from hpc_train.scaling.points import TO_TRAIN, Grouped, sizes_of
from hpc_train.scaling.record_arrays import Ints
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
    gpus, ranks, nodes = (column[groups.first] for column in sizes_of(groups.runs))
    size = np.where(ranks > 0, ranks, np.where(gpus > 0, gpus, nodes))
    n = groups.size
    regime_of, work = ["unknown"] * n, np.ones(n)
    assumption, weak = [""] * n, [False] * n
    times = moments(groups.ok_only("step_time_s"), groups.point, n).mean
    for series, own in pd.Series(groups.of_point).groupby(groups.of_point).indices.items():
        label = groups.labels[series]
        timed, regime = BASES[basis[own[0]]], recorded[label]
        known = regime != "unknown"
        steady = timed.per_step and _is_steady(times[own], size[own])
        if not (known or timed.is_rate):
            regime = declared or ("strong" if timed.per_step else "unknown")
        grows = regime == "weak" and timed.per_step
        text = "" if timed.is_rate else _assumption(timed, grows, known, declared)
        if regime == "mixed" and basis[own[0]] == TO_TRAIN:
            text = f"by the time to train, as batch and size change together, {text}"
        looks_weak = steady and not (known or declared)
        for point in own.tolist():
            regime_of[point], weak[point] = regime, looks_weak
            assumption[point] = ", ".join(filter(None, (text, assumed)))
            work[point] = size[point] if grows else 1.0
    return {"regime": regime_of, "work": work, "assumption": assumption, "looks_weak": weak}


def _assumption(timed: Basis, grows: bool, known: bool, declared: Scaling | None) -> str:
    same = "the same batch per rank" if grows else f"the same {timed.same} at every size"
    if not timed.per_step:
        return f"assuming {same}"
    if known:
        return ""
    return f"with {same}, as declared" if declared else f"assuming {same}"


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
    if runs["ranks"].isna().all():
        # A table may have only a column of nodes.
        runs = runs.assign(ranks=runs["nodes"])
    series, labels = pd.factorize(runs["series"])
    runs = runs.assign(global_batch=batch_column(runs))
    known = (runs["state"] == OK) & runs["global_batch"].notna() & runs["ranks"].notna()
    own = runs[["run_id", "series", "ranks", "global_batch"]][known]
    found = _of_series(own, series[known.to_numpy(dtype=bool)].astype(np.int64), len(labels))
    seen = set(found) - {"unknown"}
    wrong = sorted(seen - {declared}) if declared else []
    if declared and wrong:
        shown = wrong[0] if len(seen) == 1 else "mixed"
        raise ReportError(_contradiction(own, declared, shown), _hint(shown))
    common: Regime = seen.pop() if len(seen) == 1 else "unknown"
    if common == "mixed":
        common = "unknown"
    return {
        str(label): common if regime == "unknown" else regime
        for label, regime in zip(labels, found, strict=True)
    }


def batch_column(runs: pd.DataFrame) -> pd.Series:
    """Return the samples of a step of all ranks, else its tokens."""
    found: pd.Series = runs["global_batch"]
    return found.fillna(runs["tokens_per_step"]) if "tokens_per_step" in runs else found


def batches(own: pd.DataFrame) -> str:
    """Return `64 in run a, 96 in run b` for the different global batches, three at most."""
    own = own.assign(global_batch=batch_column(own))
    known = own[(own["state"] == OK) & own["global_batch"].notna()]
    each = known.drop_duplicates("global_batch")
    shown = [
        f"{batch:g} in {run}"
        for batch, run in zip(each["global_batch"][:3], each["run_id"][:3], strict=True)
    ]
    return ", ".join([*shown, *(["…"] if len(each) > 3 else [])])


def _of_series(own: pd.DataFrame, series: Ints, size: int) -> list[Regime]:
    batch, ranks = numbers(own, "global_batch"), numbers(own, "ranks")

    def same(values: Floats) -> list[bool]:
        low, high = least(values, series, size), most(values, series, size)
        return list((agree(low, high) | np.isnan(low)).tolist())

    with np.errstate(divide="ignore", invalid="ignore"):
        columns = (same(ranks), _one_batch(batch, ranks, series, size), same(batch / ranks))
    return [_regime(*answers) for answers in zip(*columns, strict=True)]


def _one_batch(batch: Floats, ranks: Floats, series: Ints, size: int) -> list[bool]:
    """Whether the batches of a series are equal up to rounding in each rank."""
    low, high = least(batch, series, size), most(batch, series, size)
    down = most(high[series] - batch - ranks, series, size) < 0
    up = most(batch - low[series] - ranks, series, size) < 0
    rounded = (down | up) & (high - low <= ROUNDED * high)
    return list((agree(low, high) | rounded | np.isnan(low)).tolist())


def _regime(one_size: bool, one_batch: bool, one_share: bool) -> Regime:
    if one_size:
        return "unknown" if one_batch else "mixed"
    if one_batch:
        return "strong"
    return "weak" if one_share else "mixed"


def _contradiction(known: pd.DataFrame, declared: Scaling, regime: str) -> str:
    ranks = known["ranks"].astype("float64")
    column = known["global_batch"] if declared == "strong" else known["global_batch"] / ranks
    what = "global batch" if declared == "strong" else "batch per rank"
    for _, group in known.assign(_batch=column).groupby("series", sort=False):
        values = group["_batch"].to_numpy(dtype=np.float64)
        other = int(np.argmax(~agree(np.minimum(values, values[0]), np.maximum(values, values[0]))))
        if other:
            names = group["run_id"].tolist()
            return (
                f"declared {declared} scaling, but the data are {regime}: {what} is "
                f"{values[0]:g} in {names[0]} and {values[other]:g} in {names[other]}"
            )
    return f"declared {declared} scaling, but the data are {regime}"


def _hint(regime: str) -> str:
    if regime == "mixed":
        return "make the batch size an axis, or submit one study per regime"
    return f"report --scaling {regime}, or `scaling: {regime}` in the study"
