"""Two run tables -> one row per point of either: ratio of the second to the first, and verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.scaling.confidence_intervals import (
    CONFIDENCE,
    ROUNDING,
    IntervalArrays,
    block_codes,
    corrected,
    differences,
    noise_limit,
    step_down,
    welch,
)
from hpc_train.scaling.group_reductions import NAN, Floats, moments, numbers
from hpc_train.scaling.points import not_ok
from hpc_train.scaling.runs import OK

Key = tuple[Any, ...]
SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "ranks")


class MatchedPoints(NamedTuple):
    """Both tables with a column `key`, and by key the runs of each point in both, in order.

    A key is the name of the series, empty if only sizes are compared, and the values of SIZES.
    """

    sides: list[pd.DataFrame]
    points: dict[Key, list[pd.DataFrame]]


def matched(a: pd.DataFrame, b: pd.DataFrame) -> MatchedPoints:
    """Match the points of two tables of `run_frame`.

    By nodes, GPUs and tasks per node (by ranks where those are unknown), and by the name of their
    series; where each side has one series only, by size alone.
    """
    alone = all(side["series"].nunique() <= 1 for side in (a, b))
    same = set(a["series"]) == set(b["series"])
    both = [_keyed(side, by_series=same or not alone) for side in (a, b)]
    groups = [_points(side) for side in both]
    keys = _ordered(list(dict.fromkeys(chain(*groups))))
    pairs = {
        key: [group.get(key, side.iloc[:0]) for group, side in zip(groups, both, strict=True)]
        for key in keys
    }
    return MatchedPoints(both, pairs)


def _points(runs: pd.DataFrame) -> dict[Key, pd.DataFrame]:
    places: dict[Key, list[int]] = {}
    for place, key in enumerate(runs["key"]):
        places.setdefault(key, []).append(place)
    return {key: runs.iloc[own] for key, own in places.items()}


def _keyed(runs: pd.DataFrame, *, by_series: bool) -> pd.DataFrame:
    """Add the key of each run's point: its series, and its sizes, -1 if unknown."""
    sizes = runs[list(SIZES)].astype("Int64").fillna(-1).astype("int64")
    known = (sizes["nodes"] > 0) & (sizes["tasks_per_node"] > 0)
    # With nodes and tasks the number of ranks is redundant; a log may not name all ranks.
    sizes["ranks"] = sizes["ranks"].where(~known, sizes["nodes"] * sizes["tasks_per_node"])
    series = runs["series"].astype(str) if by_series else [""] * len(runs)
    keyed: pd.DataFrame = runs.assign(
        key=pd.Series(list(zip(series, *(sizes[name] for name in SIZES), strict=True)),
                      index=runs.index, dtype=object)
    )  # fmt: skip
    return keyed


def _ordered(keys: Sequence[Key]) -> list[Key]:
    """Sort points by size within their series; keep the order of the series."""
    order = {name: i for i, name in enumerate(dict.fromkeys(key[0] for key in keys))}

    def place(key: Key) -> tuple[int, ...]:
        series, nodes, gpus, tasks, ranks = key
        return order[series], max(nodes, 0) * max(gpus, 0), ranks, nodes, gpus, tasks

    return sorted(keys, key=place)


SIDES = ("a", "b")
# Fields without which a ratio of speeds has no meaning; other conditions may be compared.
MUST_MATCH = ("model", "data", "dataset", "global_batch", "parser", "counted", "sequence_length")
BETTER, WORSE = "B better", "B worse"
ONE_RUN, NO_SPREAD = "n=1: no verdict", "no spread: no verdict"
COLUMNS = (
    "series", *SIZES, "gpus", "basis", "a", "b", "ratio", "ratio_low", "ratio_high",
    "level", "verdict", "why", "n_a", "n_b", "submitted_a", "submitted_b", "not_ok_a", "not_ok_b",
    "accuracy_a", "accuracy_b", "accuracy_change_pp", "accuracy_limit_pp", "loss_a", "loss_b",
    "batch_a", "batch_b",
)  # fmt: skip


class Demands(NamedTuple):
    """Options of a comparison: see `comparison_frame`."""

    confidence: float = CONFIDENCE
    min_effect: float | None = None
    allow_mixed: tuple[str, ...] = ()


def comparison_frame(
    a: pd.DataFrame, b: pd.DataFrame, demands: Demands | None = None
) -> pd.DataFrame:
    """Return one row per point that either side has, from rows of `run_frame`.

    Points are matched by nodes, GPUs and tasks per node (by ranks where those are unknown) and by
    the name of their series; where each side has one series only, by size alone.
    ratio = X_b/X_a of throughput, else T_a/T_b of a time, so that more than 1 always means that B
    is faster; the interval is Welch's on logarithms of the two samples (Hoefler and Belli, SC15:
    a direct comparison, never two intervals side by side), or Student's of the differences where
    both sides ran in the same blocks of one study. Its `level`
    is that of the verdict, which depends on it: Holm's, for all points with an interval
    (`step_down`). With `min_effect` an interval within 1 +- min_effect is no difference. Times that
    were cut to whole seconds are each up to 1 s longer: the interval allows for that. A field of
    MUST_MATCH that differs at a point and is not in `allow_mixed` leaves it without a
    ratio; `why` names the field and both values.
    """
    wanted = demands or Demands()
    found = matched(a, b)
    basis = _bases(found.sides)
    rows = [_row(key, pair, basis[key[0]], wanted) for key, pair in found.points.items()]
    table: pd.DataFrame = pd.DataFrame(_judged(rows, wanted), columns=pd.Index(COLUMNS))
    return table


def _bases(both: Sequence[pd.DataFrame]) -> dict[str, str]:
    """Return the quantity by which each series is compared, the same for both sides and all "
    "points."""
    ok = [side[side["state"] == OK] for side in both]
    names = dict.fromkeys(key[0] for side in both for key in side["key"])
    return {
        name: _basis([s.loc[[key[0] == name for key in s["key"]]] for s in ok]) for name in names
    }


def _basis(ok: Sequence[pd.DataFrame]) -> str:
    counts = {basis: [len(rates(side, basis)) for side in ok] for basis in BASES}
    complete = (b for b, n in counts.items() if n == [len(side) for side in ok] and any(n))
    shared = (b for b, n in counts.items() if all(n))
    either = (b for b, n in counts.items() if any(n))
    return next(chain(complete, shared, either), "throughput")


def _row(key: Key, pair: Sequence[pd.DataFrame], basis: str, wanted: Demands) -> dict[str, Any]:
    series, *sizes = key
    row: dict[str, Any] = {"series": series or "all", "basis": basis, "why": "", "verdict": ""}
    row |= {name: None if n < 0 else n for name, n in zip(SIZES, sizes, strict=True)}
    known = row["nodes"] is not None and row["gpus_per_node"] is not None
    row["gpus"] = row["nodes"] * row["gpus_per_node"] if known else None
    ok = [runs[runs["state"] == OK] for runs in pair]
    measured = [rates(side, basis) for side in ok]
    for name, runs, side, values in zip(SIDES, pair, ok, measured, strict=True):
        row[name] = _mean(values, basis)
        row[f"n_{name}"], row[f"submitted_{name}"] = len(values), len(runs)
        row[f"not_ok_{name}"] = not_ok(Counter(runs["state"][runs["state"] != OK]))
        row[f"accuracy_{name}"] = side["accuracy"].mean() if len(side) else NAN
        row[f"loss_{name}"] = side["loss"].mean() if "loss" in side and len(side) else NAN
        row[f"batch_{name}"] = _only(side["global_batch"])
    is_time = not BASES[basis].is_rate
    row["cut"] = is_time and any(side["whole_seconds"].eq(True).any() for side in ok)
    row["why"] = _why(row, pair, ok, wanted.allow_mixed)
    row["ok"] = ok
    return row


def rates(ok: pd.DataFrame, basis: str) -> list[float]:
    """Return the basis of a speedup: throughputs, or inverse times; positive values only."""
    values = ok[BASIS_COLUMNS[basis]]
    usable = values[values > 0]
    return (usable if BASES[basis].is_rate else 1 / usable).tolist()


def _mean(values: Sequence[float], basis: str) -> float:
    """Return the harmonic mean of rates, or the arithmetic mean of times."""
    times = [1 / value for value in values]
    mean = sum(times) / len(times) if times else NAN
    return 1 / mean if BASES[basis].is_rate else mean


def _only(values: pd.Series[float]) -> float:
    return float(values.iloc[0]) if values.nunique() == 1 else NAN


def _why(
    row: dict[str, Any],
    pair: Sequence[pd.DataFrame],
    ok: Sequence[pd.DataFrame],
    allowed: Sequence[str],
) -> str:
    """Return why a point has no ratio; empty if it has one."""
    for name in SIDES:
        if not row[f"submitted_{name}"]:
            return f"not in {name.upper()}"
        if not row[f"n_{name}"]:
            return f"{name.upper()}: {row[f'not_ok_{name}'] or 'no ' + row['basis']}"
    for field in MUST_MATCH:
        first, second = (_values(side, field) for side in ok)
        if first and second and first != second and field not in allowed:
            return f"{field} differs: {' / '.join(first)} and {' / '.join(second)}"
    return ""


def _values(ok: pd.DataFrame, field: str) -> list[str]:
    if field in ok:
        return [f"{value:g}" for value in sorted(ok[field].dropna().unique())]
    return sorted(set(_stated(ok, field)))


def _stated(runs: pd.DataFrame, field: str) -> Iterable[str]:
    if "conditions" not in runs:
        return []
    return [own[field] for own in runs["conditions"] if isinstance(own, dict) and own.get(field)]


def _judged(rows: Sequence[dict[str, Any]], wanted: Demands) -> Iterator[dict[str, Any]]:
    """Yield the rows with their ratios and verdicts; points 2k and 2k + 1 are A and B of row k."""
    if not rows:
        return
    sides = [(side, row) for row in rows for side in row["ok"]]
    runs = pd.concat([side.filter(["block", "accuracy"]) for side, _ in sides])
    point = np.repeat(np.arange(len(sides)), [len(side) for side, _ in sides])
    logs = np.concatenate([_logs(side, row) for side, row in sides])
    first, other = np.arange(0, len(sides), 2), np.full(len(sides), -1)
    other[first + 1] = first
    within = differences(logs, point, block_codes(runs), other).of(first + 1)
    speeds = moments(logs, point, len(other))
    accuracies = moments(numbers(runs, "accuracy"), point, len(other))
    (a, b), (old, new) = ((each.of(first), each.of(first + 1)) for each in (speeds, accuracies))
    several = int((np.minimum(a.number, b.number) > 1).sum())
    cut = np.array([row["cut"] for row in rows])
    times = ([row[name] for row in rows] for name in SIDES)
    longest_a, longest_b = (np.where(cut, 1 + 1 / np.array(own), 1.0) for own in times)

    def limits(level: Floats) -> IntervalArrays:
        value, low, high = within.instead_of(welch(b, a, level), level)
        return IntervalArrays(value, low / longest_b, high * longest_a)

    found, levels = step_down(limits, len(rows), several, wanted.confidence)
    noise = noise_limit(old, new, wanted.confidence)
    noise = noise_limit(old, new, corrected(wanted.confidence, int((~np.isnan(noise)).sum())))
    for place, row in enumerate(rows):
        names = ("ratio", "ratio_low", "ratio_high", "level")
        row |= {n: float(v[place]) for n, v in zip(names, (*found, levels), strict=True)}
        row["accuracy_change_pp"] = 100 * float(new.mean[place] - old.mean[place])
        row["accuracy_limit_pp"] = 100 * float(noise[place])
        yield row | _decided(row, wanted.min_effect)


def _logs(ok: pd.DataFrame, row: Mapping[str, Any]) -> Floats:
    """Return the logarithm of the speed of each run, NaN if it is not compared."""
    values = numbers(ok, BASIS_COLUMNS[row["basis"]])
    logs = np.log(np.where((values > 0) & (not row["why"]), values, NAN))
    return logs if BASES[row["basis"]].is_rate else -logs


def _decided(row: Mapping[str, Any], effect: float | None) -> dict[str, str]:
    """Return the verdict on a row, and if there is none why."""
    if row["why"]:
        return {"verdict": "not compared"}
    low, high = row["ratio_low"], row["ratio_high"]
    if isnan(low):
        alone = [n.upper() for n in SIDES if row[f"n_{n}"] == 1]
        if not alone:
            return {"verdict": NO_SPREAD, "why": "all values of each side are equal"}
        return {"verdict": ONE_RUN, "why": f"n=1 in {' and '.join(alone)}"}
    if effect is not None and 1 - effect <= low and high <= 1 + effect:
        return {"verdict": f"no difference larger than {100 * effect:g} %"}
    if low > 1 + ROUNDING:
        return {"verdict": BETTER}
    return {"verdict": WORSE if high < 1 - ROUNDING else "no difference seen at this n"}
