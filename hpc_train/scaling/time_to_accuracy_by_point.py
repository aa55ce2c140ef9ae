"""Records, runs and points -> samples and time of each point to a target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.logs.record import Record
from hpc_train.scaling.measurements import GLOBAL, Target, by_step, measurements, numbered
from hpc_train.scaling.points import KEY, ratio_interval
from hpc_train.scaling.record_arrays import record_arrays, usable
from hpc_train.scaling.runs import OK

# Values of a validation take precedence over those of the training.
VARIANTS = ("validation", "eval", "")
REACHED, NOT_REACHED, UNKNOWN = "reached", "not reached", "not measured"
TargetRow = dict[str, Any]
_TIMES = ("time_to_target_s", "time_to_target_without_startup_s")


class Evaluations(NamedTuple):
    """Qualities of one run, in order, each after a number of steps or a share of the run."""

    unit: str
    at: list[float]
    quality: list[float]


def target_rows(
    records: pd.DataFrame | Iterable[Record], runs: pd.DataFrame, points: pd.DataFrame, to: Target
) -> list[TargetRow]:
    """Return one row per point: the number of runs that reached the target, samples and time.

    `samples_to_target` is the mean over the runs, and None unless each of them reached it;
    so are the times. Nothing is extrapolated.
    `runs` are the ok runs of the point, each with its `state`.
    """
    seen = _evaluations(numbered(record_arrays(records), runs["run_id"].tolist()), to)
    grouped: dict[tuple[Any, ...], list[TargetRow]] = defaultdict(list)
    for place, (run, row) in zip(_keys(runs), enumerate(runs.to_dict("records")), strict=True):
        if row["state"] == OK:
            grouped[place].append(_run(row, seen.get(run), to))
    found = [
        _point(row, grouped[place])
        for place, row in zip(_keys(points), points.to_dict("records"), strict=True)
    ]
    return _compared(found)


def _keys(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    plain = frame[KEY].astype(object)
    rows = plain.where(plain.notna(), None)
    return [tuple(row) for row in rows.itertuples(index=False)]


def _evaluations(records: pd.DataFrame, to: Target) -> dict[int, Evaluations]:
    records = records[records["run"] >= 0]
    timed = records[records["metric"] == "epoch_time"].dropna(subset="step")
    # A quality at the numbers of timed epochs belongs to an epoch.
    epochs = {run: set(steps) for run, steps in timed.groupby("run")["step"]}
    wanted = (records["metric"] == to.metric) & records["variant"].isin(VARIANTS)
    rows = measurements(records[wanted])
    rows = rows[usable(rows["value"])]
    found: dict[int, Evaluations] = {}
    for variant in VARIANTS:
        for run, own in rows[rows["variant"] == variant].groupby("run"):
            if run not in found:
                found[int(str(run))] = _of_run(own, epochs.get(run, set()))
    return found


def _of_run(rows: pd.DataFrame, epochs: set[float]) -> Evaluations:
    """Return the evaluations of one run; values of the job take precedence over those of ranks."""
    whole = rows["scope"] == GLOBAL
    rows = rows[whole] if whole.any() else rows
    if rows["step"].isna().all():
        # Ranks repeat the same values.
        who = rows[["who", "rank"]].fillna(-1)
        values = rows["value"][(who == who.iloc[0]).all(axis=1)].tolist()
        return Evaluations("share", [(i + 1) / len(values) for i in range(len(values))], values)
    steps = by_step(rows, "mean")
    at, values = steps["step"].tolist(), steps["value"].tolist()
    if not epochs.issuperset(at):
        return Evaluations("step", at, values)
    first, last = min(epochs), max(epochs)
    shares = [(step - first + 1) / (last - first + 1) for step in at]
    return Evaluations("share", shares, values)


def _run(row: Mapping[Any, Any], seen: Evaluations | None, to: Target) -> TargetRow:
    samples = _samples(row, seen)
    plain: TargetRow = {"run_id": row["run_id"], "state": UNKNOWN, "best": None}
    plain |= dict.fromkeys(("samples_to_target", "steps_to_target", *_TIMES))
    if seen is None or not samples:
        return plain
    best = max(seen.quality) if to.higher else min(seen.quality)
    # A run ends with the first evaluation at the target (MLPerf Training rules).
    reached = [
        number
        for number, value in zip(samples, seen.quality, strict=True)
        if (value >= to.value if to.higher else value <= to.value)
    ]
    count = min(reached, default=None)
    if count is None:
        return plain | {"state": NOT_REACHED, "best": best}
    batch = row["global_batch"]
    rate = row["samples_per_second"]
    return plain | {
        "state": REACHED,
        "best": best,
        "samples_to_target": count,
        "steps_to_target": count / batch if batch > 0 else None,
        "time_to_target_s": _time(row, count),
        "time_to_target_without_startup_s": count / rate if rate > 0 else None,
    }


def _samples(row: Mapping[Any, Any], seen: Evaluations | None) -> list[float]:
    """Return the samples before each evaluation; none if the run does not print them."""
    each = row["global_batch"] if seen and seen.unit == "step" else row["samples_seen"]
    if seen is None or not each > 0:
        return []
    samples = [at * each for at in seen.at]
    return samples if min(seen.at) > 0 and usable(samples).all() else []


def _time(row: Mapping[Any, Any], count: float) -> float | None:
    """Return samples/X and the start-up; None if the start-up was not recorded.

    A run without a rate has its share of the time to train, which includes the start-up.
    """
    if (rate := row["samples_per_second"]) > 0:
        later = row["startup_s"]
        return float(count / rate + later) if later >= 0 else None
    whole = row["time_to_train_s"] * count / row["samples_seen"]
    return float(whole) if whole > 0 and usable(whole) else None


def _point(row: Mapping[Any, Any], own: Sequence[TargetRow]) -> TargetRow:
    states = [run["state"] for run in own]
    reached = states.count(REACHED)
    state = REACHED if own and reached == len(own) else NOT_REACHED
    if not own or UNKNOWN in states:
        state = UNKNOWN
    batch = row["global_batch"]

    def mean(name: str) -> float | None:
        values = [run[name] for run in own]
        return None if state != REACHED or None in values else float(np.mean(values))

    return {
        **{name: _plain(row[name]) for name in KEY},
        "gpus": _plain(row["gpus"]),
        "global_batch": float(batch) if batch > 0 else None,
        "is_baseline": bool(row["is_baseline"]),
        "n_ok": len(own),
        "n_reached": reached,
        "state": state,
        **{name: mean(name) for name in ("samples_to_target", *_TIMES)},
        "startup_s": _plain(row["startup_s"]),
        "statistical_efficiency": None,
        "runs": list(own),
    }


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _compared(rows: list[TargetRow]) -> list[TargetRow]:
    firsts = [row for row in rows if row["is_baseline"]]
    for row in rows:
        # The baseline of the series, else that of another.
        own = [other for other in firsts if other["series"] == row["series"]]
        base = next(iter([*own, *firsts]), None)
        if base is None or row["state"] != REACHED or base["state"] != REACHED:
            continue
        first, later = ([run["samples_to_target"] for run in one["runs"]] for one in (base, row))
        # (Qiao et al., Pollux, OSDI 2021, for the name.)
        known = base["samples_to_target"] / row["samples_to_target"]
        low = high = None
        # Runs with one seed agree exactly: they are not repetitions for an interval.
        if row is not base and len({*first}) > 1 and len({*later}) > 1:
            _, low, high = ratio_interval(first, later)
        row["statistical_efficiency"] = {"value": known, "low": low, "high": high}
    return rows
