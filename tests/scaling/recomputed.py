"""Rows of jobs -> the point table once more, in exact fractions, loops and scipy's own tests.

Nothing of the product is used here: what it says must follow from the rows alone.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from scipy import stats

Row = Mapping[str, Any]
Found = dict[str, float | None]
BASES = ("samples_per_second", "tokens_per_second", "epoch_time", "time_to_train")
RATES = BASES[:2]
MEANS = {
    "epoch_time": "epoch_time_s",
    "time_to_train": "time_to_train_s",
    "accuracy": "accuracy",
    "mfu": "mfu",
    "steps": "optimiser_steps",
    "samples_seen": "samples_seen",
    "step_time": "step_time_s",
}
NO_LIMITS = (None, None, None)


def recomputed(rows: Sequence[Row]) -> dict[tuple[Any, ...], Found]:
    """Return every number of each point, by series and nodes, GPUs and tasks of each."""
    rows = [_derived(row) for row in rows]
    found: dict[tuple[Any, ...], Found] = {}
    for series in {row["launcher"] for row in rows}:
        own = [row for row in rows if row["launcher"] == series]
        basis = _basis([row for row in own if _ok(row)])
        points: dict[tuple[int, ...], list[Row]] = {}
        for row in own:
            size = (row["nodes"], row["gpus_per_node"], row["tasks_per_node"])
            points.setdefault(size, []).append(row)
        base = min(points, key=lambda size: (size[0] * size[1], size[0] * size[2], size[0]))
        for key, of_point in points.items():
            half = _half(key, list(points))
            others = (points[base], points[half] if half else [])
            place: tuple[Any, ...] = (series, *key)
            found[place] = _point(of_point, others, basis, key == base)
    return found


def speedup(own: Sequence[float], base: Sequence[float]) -> tuple[float | None, ...]:
    """Return the ratio of geometric means and Welch's limits on logarithms, as scipy has them."""
    if not own or not base:
        return NO_LIMITS
    logs = [[math.log(x) for x in side] for side in (own, base)]
    value = math.exp(math.fsum(logs[0]) / len(own) - math.fsum(logs[1]) / len(base))
    if min(len(own), len(base)) < 2:
        return value, None, None
    between = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    return value, math.exp(between.low), math.exp(between.high)


def _derived(row: Row) -> Row:
    """Return a row with what follows: the rate from the time of a step, the samples from steps."""
    batch, rate, seen = (
        row[k] for k in ("global_batch_size", "samples_per_second", "samples_seen")
    )
    if rate is None and row["step_time"]:
        rate = batch / row["step_time"]
    if seen is None and row["steps"]:
        seen = batch * row["steps"]
    return {**row, "samples_per_second": rate, "samples_seen": seen}


def _ok(row: Row) -> bool:
    return not row["exclude"] and row["state"] in ("", "ok")


def _basis(ok: Sequence[Row]) -> str:
    whole = [name for name in BASES if ok and all(row[name] is not None for row in ok)]
    some = [name for name in BASES if any(row[name] is not None for row in ok)]
    return [*whole, *some, BASES[0]][0]


def _half(key: tuple[int, ...], keys: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the point of half the GPUs: of several the one with as many GPUs and tasks a node."""
    fit = [other for other in keys if 2 * other[0] * other[1] == key[0] * key[1]]
    nodes_more = [other for other in fit if other[1:] == key[1:]]
    gpus_more = [other for other in fit if other[1] == key[1]]
    same_nodes = sorted(other for other in fit if other[0] == key[0])
    return next(iter([*nodes_more, *sorted(gpus_more), *same_nodes, *sorted(fit)]), None)


def _values(rows: Sequence[Row], name: str) -> list[float]:
    return [float(row[name]) for row in rows if _ok(row) and row[name] is not None]


def _speeds(rows: Sequence[Row], basis: str) -> list[float]:
    values = _values(rows, basis)
    return values if basis in RATES else [1 / value for value in values]


def _point(rows: Sequence[Row], others: Sequence[Sequence[Row]], basis: str, first: bool) -> Found:
    base, half = others
    one = rows[0]
    gpus, ranks = one["nodes"] * one["gpus_per_node"], one["nodes"] * one["tasks_per_node"]
    q = Fraction(gpus, base[0]["nodes"] * base[0]["gpus_per_node"])
    found: Found = {"gpus": gpus, "ranks": ranks, "ideal": float(q)}
    found["n_ok"], found["n_submitted"] = sum(map(_ok, rows)), len(rows)
    speeds = _speeds(rows, basis)
    ratio = speedup(speeds, _speeds(base, basis))
    if first and speeds:
        ratio = (1.0, None, None)
    found |= _limits("speedup", ratio)
    found |= _limits("efficiency", [None if x is None else x / float(q) for x in ratio])
    found |= _karp_flatt(ratio, float(q))
    doubled = speedup(speeds, _speeds(half, basis))
    found |= _limits("doubling", [None if x is None else x / 2 for x in doubled])
    found["cv"] = statistics.stdev(speeds) / statistics.fmean(speeds) if len(speeds) > 1 else None
    return found | _means(rows) | _change(rows, base) | _rates(rows, gpus, ranks, basis)


def _limits(name: str, limits: Sequence[float | None]) -> Found:
    return dict(zip((name, f"{name}_low", f"{name}_high"), limits, strict=True))


def _karp_flatt(ratio: Sequence[float | None], q: float) -> Found:
    if q <= 1:
        return _limits("karp_flatt", NO_LIMITS)
    value, low, high = ratio
    each = [None if s is None else (q - s) / (s * (q - 1)) for s in (value, high, low)]
    return _limits("karp_flatt", each)


def _means(rows: Sequence[Row]) -> Found:
    found: Found = {}
    for column, name in MEANS.items():
        exact = [Fraction(value) for value in _values(rows, column)]
        found[name] = float(sum(exact) / len(exact)) if exact else None
    return found


def _change(rows: Sequence[Row], base: Sequence[Row]) -> Found:
    own, first = _values(rows, "accuracy"), _values(base, "accuracy")
    known = bool(own and first and _values(base, _basis([row for row in base if _ok(row)])))
    change = 100 * (statistics.fmean(own) - statistics.fmean(first)) if known else None
    return {"accuracy_change_pp": change}


def _rates(rows: Sequence[Row], gpus: int, ranks: int, basis: str) -> Found:
    """Return what follows from the mean time of one sample: rates are averaged over equal work."""
    found: Found = {}
    spent = [Fraction(row["wall_s"]) for row in rows if row["wall_s"] is not None]
    found["gpu_hours_spent"] = float(gpus * sum(spent) / 3600) if spent else None
    for name in RATES:
        times = [1 / Fraction(value) for value in _values(rows, name)]
        found[name] = float(len(times) / sum(times)) if times else None
    whole = found["samples_per_second"]
    found["samples_per_second_per_rank"] = whole / ranks if whole else None
    whole = found["tokens_per_second"] if basis == "tokens_per_second" else whole
    found["gpu_hours_per_million"] = gpus * 1e6 / whole / 3600 if whole else None
    found["node_hours_per_million"] = rows[0]["nodes"] * 1e6 / whole / 3600 if whole else None
    return found
