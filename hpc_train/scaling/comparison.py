"""Two run tables -> one row per point of either: ratio of the second to the first, and verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.scaling.confidence_intervals import (
    ROUNDING,
    IntervalArrays,
    block_codes,
    corrected,
    differences,
    noise_limit,
    step_down,
    welch,
)
from hpc_train.scaling.group_reductions import NAN, Floats, Mask, moments, numbers, over
from hpc_train.scaling.points import not_ok
from hpc_train.scaling.report_options import CONFIDENCE
from hpc_train.scaling.runs import OK

SIDES = ("a", "b")
SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "ranks")
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


class Sides(NamedTuple):
    """The runs of both tables: at row k those with `point` 2k are of A, with 2k + 1 of B.

    `rows` have the series, empty if only sizes are compared, and SIZES, -1 if unknown. `basis` is
    the quantity by which each row is compared.
    """

    runs: pd.DataFrame
    rows: pd.DataFrame
    basis: list[str]

    @property
    def values(self) -> Floats:
        """The rate or time by which each run is compared; NaN if it is not above 0, or not ok."""
        columns = np.array([BASIS_COLUMNS[basis] for basis in self.basis], dtype=object)
        of_run, found = columns[self.runs["point"].to_numpy() // 2], np.full(len(self.runs), NAN)
        for name in set(columns):
            found = np.where(of_run == name, self.ok_only(name), found)
        return np.where(found > 0, found, NAN)

    def ok_only(self, name: str) -> Floats:
        """Return a column of the runs, NaN if the run is not ok."""
        return np.where(self.runs["state"] == OK, numbers(self.runs, name), NAN)


def matched(a: pd.DataFrame, b: pd.DataFrame) -> Sides:
    """Match the points of two tables of `run_frame`.

    By nodes, GPUs and tasks per node (by ranks where those are unknown), and by the name of their
    series; where each side has one series only, by size alone.
    """
    alone = all(side["series"].nunique() <= 1 for side in (a, b))
    same = set(a["series"]) == set(b["series"])
    sides = []
    for place, runs in enumerate((a, b)):
        sizes = runs[list(SIZES)].astype("Int64").fillna(-1).astype("int64")
        known = (sizes["nodes"] > 0) & (sizes["tasks_per_node"] > 0)
        # With nodes and tasks the number of ranks is redundant; a log may not name all ranks.
        sizes["ranks"] = sizes["ranks"].where(~known, sizes["nodes"] * sizes["tasks_per_node"])
        name = runs["series"].astype(str) if same or not alone else ""
        sides.append(
            runs.assign(**{str(key): sizes[key] for key in sizes}, series=name, side=place)
        )
    runs = pd.concat(sides, ignore_index=True)
    key = ["series", *SIZES]
    # By size within the series, which stay in order.
    rows = runs[key].drop_duplicates()
    order = {name: place for place, name in enumerate(dict.fromkeys(rows["series"]))}
    gpus = rows["nodes"].clip(lower=0) * rows["gpus_per_node"].clip(lower=0)
    rows = rows.assign(place=rows["series"].map(order), gpus=gpus).sort_values(
        ["place", "gpus", "ranks", "nodes", "gpus_per_node", "tasks_per_node"], ignore_index=True
    )
    numbered = runs[key].merge(rows[key].assign(row=rows.index), how="left")["row"]
    runs["point"] = 2 * numbered.to_numpy(dtype=np.int64) + runs["side"]
    series = {name: _basis(own) for name, own in runs.groupby("series", sort=False)}
    return Sides(runs, rows[key], [series[name] for name in rows["series"]])


def _basis(runs: pd.DataFrame) -> str:
    """Return what each ok run of a series has, else some of both sides, else one of either."""
    ok = runs[runs["state"] == OK]
    every = [int((ok["side"] == side).sum()) for side in (0, 1)]
    counts = {
        basis: [int(((ok["side"] == side) & (ok[name] > 0)).sum()) for side in (0, 1)]
        for basis, name in BASIS_COLUMNS.items()
    }
    complete = [basis for basis, n in counts.items() if n == every and any(n)]
    shared = [basis for basis, n in counts.items() if all(n)]
    either = [basis for basis, n in counts.items() if any(n)]
    return next(iter([*complete, *shared, *either]), "throughput")


def comparison_frame(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    confidence: float = CONFIDENCE,
    min_effect: float | None = None,
    allow_mixed: tuple[str, ...] = (),
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
    sides = matched(a, b)
    runs, count = sides.runs, len(sides.rows)
    if not count:
        return pd.DataFrame(columns=pd.Index(COLUMNS))
    point, row = runs["point"].to_numpy(), runs["point"].to_numpy() // 2
    is_rate = np.array([BASES[basis].is_rate for basis in sides.basis])
    table = _table(sides, is_rate, allow_mixed)
    logs = np.log(sides.values)
    logs = np.where((table["why"] == "").to_numpy()[row], np.where(is_rate[row], logs, -logs), NAN)
    cut = runs["whole_seconds"].eq(True) & (runs["state"] == OK) & ~is_rate[row]
    is_cut = over("max", cut.to_numpy(dtype=np.float64), row, count) > 0
    longest_a, longest_b = (np.where(is_cut, 1 + 1 / table[name], 1.0) for name in SIDES)
    first = np.arange(0, 2 * count, 2)
    other = np.full(2 * count, -1)
    other[first + 1] = first
    within = differences(logs, point, block_codes(runs), other).of(first + 1)
    speeds, accuracies = (
        moments(own, point, 2 * count) for own in (logs, sides.ok_only("accuracy"))
    )
    (one, two), (old, new) = ((own.of(first), own.of(first + 1)) for own in (speeds, accuracies))

    def limits(level: Floats) -> IntervalArrays:
        value, low, high = within.instead_of(welch(two, one, level), level)
        return IntervalArrays(value, low / longest_b, high * longest_a)

    several = int((np.minimum(one.number, two.number) > 1).sum())
    found, levels = step_down(limits, count, several, confidence)
    noise = noise_limit(old, new, confidence)
    noise = noise_limit(old, new, corrected(confidence, int((~np.isnan(noise)).sum())))
    table = table.assign(
        ratio=found.value, ratio_low=found.low, ratio_high=found.high, level=levels,
        accuracy_change_pp=100 * (new.mean - old.mean), accuracy_limit_pp=100 * noise,
    )  # fmt: skip
    decided = [_decided(own, min_effect) for own in table.to_dict("records")]
    table["verdict"], table["why"] = zip(*decided, strict=True)
    return table[list(COLUMNS)]


def _table(sides: Sides, is_rate: Mask, allowed: Sequence[str]) -> pd.DataFrame:
    """Return the columns of each side, and why a row has no ratio."""
    runs, rows, size = sides.runs, sides.rows, 2 * len(sides.rows)
    point, ok = runs["point"].to_numpy(), (runs["state"] == OK).to_numpy(dtype=bool)
    # The harmonic mean of rates, and the arithmetic mean of times.
    times = np.where(is_rate[point // 2], 1 / sides.values, sides.values)
    mean = moments(times, point, size)
    accuracy, loss = (moments(sides.ok_only(name), point, size) for name in ("accuracy", "loss"))
    low, high = (over(how, sides.ok_only("global_batch"), point, size) for how in ("min", "max"))
    states = [Counter[str]() for _ in range(size)]
    for place, state in zip(point[~ok].tolist(), runs["state"][~ok], strict=True):
        states[place][str(state)] += 1
    columns = {
        "": np.where(np.repeat(is_rate, 2), 1 / mean.mean, mean.mean),
        "n_": mean.number.astype(np.int64), "submitted_": np.bincount(point, minlength=size),
        "not_ok_": np.array([not_ok(own) for own in states], dtype=object),
        "accuracy_": accuracy.mean, "loss_": loss.mean, "batch_": np.where(low == high, low, NAN),
    }  # fmt: skip
    gpus = rows["nodes"] * rows["gpus_per_node"]
    gpus = gpus.where((rows["nodes"] >= 0) & (rows["gpus_per_node"] >= 0), -1)
    table = rows.assign(gpus=gpus).astype(object).where(lambda own: own != -1, None)
    table = table.assign(series=rows["series"].replace("", "all"), basis=sides.basis)
    for start, column in columns.items():
        for place, name in enumerate(SIDES):
            table[f"{start}{name}"] = column[place::2]
    of_point = dict(iter(runs[ok].groupby("point")))
    table["why"] = [
        _why(row, [of_point.get(2 * place + side, runs[:0]) for side in (0, 1)], allowed)
        for place, row in enumerate(table.to_dict("records"))
    ]
    return table


def _why(row: Mapping[Any, Any], ok: Sequence[pd.DataFrame], allowed: Sequence[str]) -> str:
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
    conditions = ok["conditions"] if "conditions" in ok else ()
    return sorted({own[field] for own in conditions if isinstance(own, dict) and own.get(field)})


def _decided(row: Mapping[Any, Any], effect: float | None) -> tuple[str, str]:
    """Return the verdict on a row, and if there is none why."""
    if row["why"]:
        return "not compared", row["why"]
    low, high = row["ratio_low"], row["ratio_high"]
    if isnan(low):
        alone = [n.upper() for n in SIDES if row[f"n_{n}"] == 1]
        if not alone:
            return NO_SPREAD, "all values of each side are equal"
        return ONE_RUN, f"n=1 in {' and '.join(alone)}"
    if effect is not None and 1 - effect <= low and high <= 1 + effect:
        return f"no difference larger than {100 * effect:g} %", ""
    if low > 1 + ROUNDING:
        return BETTER, ""
    return WORSE if high < 1 - ROUNDING else "no difference seen at this n", ""
