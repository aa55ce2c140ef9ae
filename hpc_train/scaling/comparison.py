"""Ratios with verdicts: of two run tables, of series at each size, of strategies."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.metrics import BASES, BASIS_COLUMNS
from hpc_train.jobs.operations import PARAMETERS, number_of
from hpc_train.jobs.strategies import (
    GPT_SHAPES,
    MESHES,
    SCHEDULES,
    STRATEGIES,
    TrainingRequest,
    TrainingSize,
    idle_share,
    sent_bytes,
    state_bytes,
    strategy_problem,
)
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.runs.run import JobState
from hpc_train.scaling.caveats import ApartPoints, apart
from hpc_train.scaling.points import (
    CONFIDENCE,
    KEY,
    ROUNDING,
    IntervalArrays,
    block_codes,
    corrected,
    differences,
    grouped,
    noise_limit,
    not_ok,
    rates_by,
    sizes_of,
    step_down,
    welch,
)
from hpc_train.scaling.record_arrays import (
    NAN,
    Floats,
    Ints,
    Mask,
    codes,
    moments,
    numbers,
    of_metric,
    over,
)
from hpc_train.scaling.runs import OK
from hpc_train.scaling.split_series import MUST_MATCH, comparable_series, with_several

SIDES = ("a", "b")
SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "ranks")
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


def apart_sides(a: pd.DataFrame, b: pd.DataFrame) -> tuple[ApartPoints, ...]:
    """Return the points of a comparison whose two sides have no common node, as its rows."""
    sides = matched(a, b)
    if "node_list" not in sides.runs:
        return ()
    pairs = [(2 * row, 2 * row + 1) for row in range(len(sides.rows))]
    return tuple(
        one._replace(point=one.point // 2, other=one.other // 2)
        for one in apart(sides.runs, sides.runs["point"].to_numpy(), pairs)
    )


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
    allow_mixed: tuple[str, ...] = (),
) -> pd.DataFrame:
    """Return one row per point that either side has, from rows of `run_frame`.

    Points are matched by nodes, GPUs and tasks per node (by ranks where those are unknown) and by
    the name of their series; where each side has one series only, by size alone.
    ratio = X_b/X_a of throughput, else T_a/T_b of a time, so that more than 1 always means that B
    is faster; the interval is Welch's on logarithms of the two samples (Hoefler and Belli, SC15:
    a direct comparison, never two intervals side by side). Its `level` is that of the verdict,
    which depends on it: Holm's, for all points with an interval (`step_down`). Times that were cut
    to whole seconds are each up to 1 s longer: the interval allows for that. A field of MUST_MATCH
    that differs at a point and is not in `allow_mixed` leaves it without a ratio; `why` names the
    field and both values.
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
    speeds, accuracies = (
        moments(own, point, 2 * count) for own in (logs, sides.ok_only("accuracy"))
    )
    (one, two), (old, new) = ((own.of(first), own.of(first + 1)) for own in (speeds, accuracies))

    def limits(level: Floats) -> IntervalArrays:
        value, low, high = welch(two, one, level)
        return IntervalArrays(value, low / longest_b, high * longest_a)

    several = int((np.minimum(one.number, two.number) > 1).sum())
    found, levels = step_down(limits, count, several, confidence)
    noise = noise_limit(old, new, confidence)
    noise = noise_limit(old, new, corrected(confidence, int((~np.isnan(noise)).sum())))
    table = table.assign(
        ratio=found.value, ratio_low=found.low, ratio_high=found.high, level=levels,
        accuracy_change_pp=100 * (new.mean - old.mean), accuracy_limit_pp=100 * noise,
    )  # fmt: skip
    decided = [_decided(own) for own in table.to_dict("records")]
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


def _decided(row: Mapping[Any, Any]) -> tuple[str, str]:
    """Return the verdict on a row, and if there is none why."""
    if row["why"]:
        return "not compared", row["why"]
    low, high = row["ratio_low"], row["ratio_high"]
    if isnan(low):
        alone = [n.upper() for n in SIDES if row[f"n_{n}"] == 1]
        if not alone:
            return NO_SPREAD, "all values of each side are equal"
        return ONE_RUN, f"n=1 in {' and '.join(alone)}"
    if low > 1 + ROUNDING:
        return BETTER, ""
    return WORSE if high < 1 - ROUNDING else "no difference seen at this n", ""


# Largest difference of the losses, as a fraction of that of `single`: the sums of a strategy have
# another order, which shows in the last digits of the precision.
TOLERANCE = {"fp64": 1e-10, "fp32": 1e-4, "bf16": 1e-2, "fp16": 1e-2}
_MEASURED = ("state_memory", "sent_bytes", "exposed_communication")
_SAME = ("model", "data", "precision", "optimizer")
_MEDIANS = ("step_time_s", "samples_per_second", "loss", "mfu", "memory_gib", *_MEASURED)
_GIB = 2**30

Row = dict[str, Any]


def strategy_rows(runs: pd.DataFrame, records: pd.DataFrame) -> list[Row]:
    """Return the rows, by size and speed; empty without two strategies that have a result.

    Times in s, memory in GiB (of the states the mean, else the peak of the largest rank), traffic
    in bytes of a rank and step, `idle` as a share. `expected_...` are from formulas.
    """
    trained = np.array(
        [own.get("strategy") in STRATEGIES for own in runs["conditions"]], dtype=bool
    )
    done = runs[trained & (runs["state"] == JobState.COMPLETED.value)]
    if done.empty:
        return []
    # The mean over the ranks of each run.
    measured = {
        name: of_metric(records, name).groupby("run", observed=True)["value"].mean().to_dict()
        for name in _MEASURED
    }
    groups: dict[tuple[str, int], list[Row]] = {}
    for run in done[done["ranks"].notna()].to_dict("records"):
        own = {name: values.get(run["run_id"]) for name, values in measured.items()}
        mfu = run["mfu"] if pd.notna(run["mfu"]) else run["mfu_computed"]
        row = {**run, **own, **run["conditions"], "mfu": mfu}
        groups.setdefault((run["series"], int(run["ranks"])), []).append(row)
    rows = [_row(group) for group in groups.values()]
    if len({row["strategy"] for row in rows}) < 2:
        return []
    for row in rows:
        row |= _compared(row, rows)
    return sorted(rows, key=lambda row: (row["ranks"], -(row["samples_per_second"] or 0)))


def _row(group: Sequence[Row]) -> Row:
    first = group[0]
    row = {"strategy": first["strategy"], "series": first["series"], "n": len(group)}
    row |= {name: first.get(name) for name in ("mesh", "schedule", *_SAME)}
    row |= {"ranks": int(first["ranks"]), "global_batch": _known(first["global_batch"])}
    for name in _MEDIANS:
        values = [value for run in group if (value := _known(run[name])) is not None]
        row[name] = median(values) if values else None
    return row | _expected(first)


def _known(value: Any) -> float | None:
    return float(value) if pd.notna(value) else None


def _expected(run: Row) -> Row:
    """Return memory, traffic and bubble by the formulas, None where the run does not say enough."""
    names = ("expected_state_memory", "expected_sent_bytes", "idle")
    request, size = _request(run), _size(run)
    if request is None or size is None:
        return dict.fromkeys(names)
    memory = state_bytes(request, size) / _GIB
    return dict(zip(names, (memory, sent_bytes(request, size), idle_share(request)), strict=True))


def _request(run: Row) -> TrainingRequest | None:
    mesh = str(run.get("mesh") or "").split(",")
    schedule, parts = run.get("schedule"), number_of(run.get("microbatches"))
    named = run["strategy"] in MESHES and len(mesh) == 2 and all(map(str.isdecimal, mesh))
    request = TrainingRequest(
        strategy=run["strategy"],
        model=run["model"] if run.get("model") in GPT_SHAPES else "cnn",
        world_size=int(run["ranks"]),
        mesh=(int(mesh[0]), int(mesh[1])) if named else (),
        schedule=schedule if schedule in SCHEDULES else "1F1B",
        accumulate=int(parts) if parts else None,
    )
    return None if strategy_problem(request) else request


def _size(run: Row) -> TrainingSize | None:
    parameters, batch = number_of(run.get(PARAMETERS)), _known(run["global_batch"])
    if not parameters or not batch or run.get("optimizer") not in ("sgd", "adamw"):
        return None
    backend = "gloo" if run.get("device") == "cpu" else "nccl"
    return TrainingSize(
        parameters=int(parameters),
        optimizer=run["optimizer"],
        batch=int(batch),
        backend=backend,
        gathered=2 if run.get("precision") in ("bf16", "fp16") else 4,
    )


def _compared(row: Row, rows: Sequence[Row]) -> Row:
    """Return speedup, efficiency and loss difference to `single`, or why there is no speedup."""
    found: Row = {"speedup": None, "efficiency": None, "loss_difference": None, "reason": ""}
    same = ("global_batch", *_SAME)
    single = next(
        (o for o in rows if o["strategy"] == "single" and all(o[k] == row[k] for k in same)), None
    )
    if single is None:
        return {**found, "reason": "no run of single with the same work"}
    if row["loss"] is None or single["loss"] is None:
        return {**found, "reason": "the loss is not known"}
    difference = abs(row["loss"] - single["loss"]) / (abs(single["loss"]) or 1.0)
    found["loss_difference"] = difference
    limit = TOLERANCE.get(row["precision"] or "", TOLERANCE["fp32"])
    if not difference <= limit:
        reason = f"its loss differs from that of single by {difference:.1e}, more than {limit:g}"
        return {**found, "reason": reason}
    if not row["samples_per_second"] or not single["samples_per_second"]:
        return {**found, "reason": "the throughput is not known"}
    speedup = row["samples_per_second"] / single["samples_per_second"]
    return {**found, "speedup": speedup, "efficiency": speedup / row["ranks"]}


_SIZES = KEY[1:]
FASTER, UNDECIDED = "faster", "no difference seen at this n"
NO_RESULT, NO_OTHER = "no result", "no other series at this size"
_FASTEST = (
    *_SIZES, "group", "basis", "fastest", "value", "n", "series", "other_value", "other_n",
    "not_ok", "ratio", "ratio_low", "ratio_high", "level", "comparisons", "verdict",
)  # fmt: skip


class _Pairs(NamedTuple):
    """The fastest point of each size, and one other; the same if there is no other."""

    fastest: Ints
    other: Ints


def fastest_frame(
    runs: pd.DataFrame, points: pd.DataFrame, study: ExpectedStudy, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """Return a row for each size and each series that is compared there with the fastest one.

    `points` are the rows that `speedup_frame` makes of `runs`. Series are compared if they did the
    same work (`comparable_series`); `group` is the number of their class, and a class of one series
    has no row. ratio = X(fastest)/X(other) of geometric means over runs (for times T(other)/
    T(fastest)), with Welch's interval on logarithms, or Student's of the differences where the
    runs of both form pairs (`differences`).

    The fastest series is known only from the data, so that every pair of series with an interval
    counts as one of the `comparisons` of Holm's step-down (`step_down`; for all pairs: Y. Hochberg
    and A. C. Tamhane, Multiple Comparison Procedures, Wiley 1987); `level` is that of the interval.
    `verdict` is `faster` if `ratio_low` is above 1. Times that were cut to whole seconds are each
    up to 1 s longer, and the interval allows for that.
    """
    groups = grouped(runs)
    columns = {name: points[name].tolist() for name in ("basis", "regime")}
    group = comparable_series(groups, study, columns)
    logs = np.log(rates_by(groups, columns["basis"], points["work"].to_numpy(dtype=np.float64)))
    own = moments(logs, groups.point, groups.size)
    size = _same_size(points, group, with_several(groups, group, own.mean))
    pairs = _pairs(size, own.mean)
    # By class, then the smallest size first.
    keys = (*reversed(sizes_of(points)), group)
    order = np.lexsort([key[pairs.fastest] for key in keys])
    pairs = _Pairs(*(side[order] for side in pairs))
    several = _comparisons(pairs, own.number)
    fastest = np.full(groups.size, -1, dtype=np.int64)
    fastest[pairs.other] = pairs.fastest
    within = differences(logs, groups.point, block_codes(groups.runs), fastest).inverse()
    value = [float(points[BASIS_COLUMNS[columns["basis"][at]]].iloc[at]) for at in pairs.fastest]
    cut = points["whole_seconds"].to_numpy(dtype=bool)[pairs.fastest]
    # The time of the fastest series may have been cut by almost a second.
    longest = np.where(cut, 1 + 1 / np.array(value), 1.0)

    def limits(level: Floats) -> IntervalArrays:
        apart = welch(own.of(pairs.fastest), own.of(pairs.other), level)
        ratio, low, high = within.of(pairs.other).instead_of(apart, level)
        return IntervalArrays(ratio, low / longest, high)

    found = step_down(limits, len(cut), several, confidence)
    rows = _rows(points.assign(group=group), pairs, own.number, found)
    table: pd.DataFrame = pd.DataFrame(rows, columns=pd.Index(_FASTEST))
    table["comparisons"] = several
    return table


def _same_size(points: pd.DataFrame, group: Ints, several: Mask) -> Ints:
    """Number the sizes of each class with several series; -1 for others and for unknown sizes.

    A point with another global batch has a size of its own.
    """
    known = points[["nodes", "ranks", "gpus"]].notna().any(axis=1).to_numpy(dtype=bool)
    place = codes([pd.Series(group), *(points[name] for name in _SIZES)])
    batch = points["global_batch"].astype("float64")
    # A batch that is not recorded is the usual one of its size.
    usual = batch.fillna(batch.groupby(place).transform("first"))
    return np.where(several & known, codes([pd.Series(place), usual]), -1)


def _pairs(size: Ints, speed: Floats) -> _Pairs:
    """Pair the fastest point of each size with each other point, the faster ones first."""
    slowest_last = -np.where(np.isnan(speed), -np.inf, speed)
    order = np.lexsort((slowest_last, size))
    order = order[size[order] >= 0]
    _, first, count = np.unique(size[order], return_index=True, return_counts=True)
    fastest = np.repeat(order[first], count)
    # A point that is alone is paired with itself.
    keep = (fastest != order) | (np.repeat(count, count) == 1)
    keep &= ~np.isnan(speed[fastest])
    return _Pairs(fastest[keep], order[keep])


def _comparisons(pairs: _Pairs, number: Floats) -> int:
    """Return the number of pairs of series that both have an interval, at all sizes."""
    apart = pairs.fastest != pairs.other
    repeated = np.bincount(
        pairs.fastest[apart], number[pairs.other[apart]] > 1, minlength=len(number)
    )
    repeated[np.unique(pairs.fastest)] += number[np.unique(pairs.fastest)] > 1
    return int((repeated * (repeated - 1) // 2).sum())


def _rows(
    points: pd.DataFrame, pairs: _Pairs, number: Floats, found: tuple[IntervalArrays, Floats]
) -> Iterator[dict[str, Any]]:
    used = [*_SIZES, "group", "basis", "series", "not_ok"]
    values = [name for name in dict.fromkeys(BASIS_COLUMNS.values()) if name in points]
    each = points[[*used, *values]].to_dict("records")
    for fastest, other, *limits in zip(
        pairs.fastest.tolist(), pairs.other.tolist(), *found[0], found[1], strict=True
    ):
        one, two = each[fastest], each[other]
        column = BASIS_COLUMNS[one["basis"]]
        row = {name: one[name] for name in (*_SIZES, "group", "basis")}
        row |= {"fastest": one["series"], "value": float(one[column]), "n": int(number[fastest])}
        if one is two:
            yield row | {"series": None, "verdict": NO_OTHER}
            continue
        row |= {"series": two["series"], "other_value": float(two[column])}
        row |= {"other_n": int(number[other]), "not_ok": two["not_ok"]}
        row |= dict(zip(("ratio", "ratio_low", "ratio_high", "level"), limits, strict=True))
        yield row | {"verdict": _verdict(limits[1], row)}


def _verdict(low: float, row: dict[str, Any]) -> str:
    if not row["other_n"]:
        return NO_RESULT
    if np.isnan(low):
        return ONE_RUN if min(row["n"], row["other_n"]) == 1 else NO_SPREAD
    return FASTER if low > 1 + ROUNDING else UNDECIDED
