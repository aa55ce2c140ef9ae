"""Records, runs and points -> samples and time of each point to a target."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.logs.record import Record
from hpc_train.scaling.measurements import GLOBAL, Target, by_step, measurements, numbered
from hpc_train.scaling.points import KEY
from hpc_train.scaling.record_arrays import record_arrays, usable
from hpc_train.scaling.runs import OK

# Values of a validation take precedence over those of the training.
VARIANTS = ("validation", "eval", "")
REACHED, NOT_REACHED, UNKNOWN = "reached", "not reached", "not measured"


class Evaluations(NamedTuple):
    """Qualities of one run, in order, each after a number of steps or a share of the run."""

    unit: str
    at: list[float]
    quality: list[float]


class Reached(NamedTuple):
    """Whether a run reached the target, after how many samples and seconds."""

    state: str
    samples: float | None = None
    seconds: float | None = None


def target_rows(
    records: pd.DataFrame | Iterable[Record], runs: pd.DataFrame, points: pd.DataFrame, to: Target
) -> list[dict[str, Any]]:
    """Return one row per point: the number of runs that reached the target, samples and time [s].

    Both are means over the runs, and None unless each of them reached it; nothing is extrapolated.
    """
    seen = _evaluations(numbered(record_arrays(records), runs["run_id"].tolist()), to)
    of_point: dict[tuple[Any, ...], list[Reached]] = defaultdict(list)
    for key, (run, row) in zip(_keys(runs), enumerate(runs.to_dict("records")), strict=True):
        if row["state"] == OK:
            of_point[key].append(_run(row, seen.get(run), to))
    rows = []
    for key, batch in zip(_keys(points), points["global_batch"], strict=True):
        own = of_point[key]
        states = [run.state for run in own]
        rows.append(
            {
                **dict(zip(KEY, key, strict=True)),
                "global_batch": float(batch) if batch > 0 else None,
                "n_ok": len(own),
                "n_reached": states.count(REACHED),
                "state": UNKNOWN if not own or UNKNOWN in states else min(states),
                "samples_to_target": _mean([run.samples for run in own]),
                "time_to_target_s": _mean([run.seconds for run in own]),
            }
        )
    return rows


def _keys(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    plain = frame[KEY].astype(object)
    rows = plain.where(plain.notna(), None)
    return [tuple(row) for row in rows.itertuples(index=False)]


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


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


def _run(row: Mapping[Any, Any], seen: Evaluations | None, to: Target) -> Reached:
    """Return when a run ended by the rules of MLPerf: at the first evaluation at the target."""
    each = row["global_batch"] if seen and seen.unit == "step" else row["samples_seen"]
    if seen is None or not each > 0 or not min(seen.at) > 0:
        return Reached(UNKNOWN)
    good = np.array(seen.quality) >= to.value if to.higher else np.array(seen.quality) <= to.value
    if not good.any():
        return Reached(NOT_REACHED)
    samples = float(np.array(seen.at)[good].min() * each)
    if (rate := row["samples_per_second"]) > 0:
        seconds = samples / rate
    else:
        seconds = row["time_to_train_s"] * samples / row["samples_seen"]
    known = [float(x) if x > 0 and usable(x) else None for x in (samples, seconds)]
    return Reached(REACHED, *known)
