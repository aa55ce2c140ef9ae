"""What nodes, times and rates of runs say against its ratios, and values that cannot be right.

- Points that are compared, the repetitions of each on one set of nodes, without a common node: a
  difference between nodes looks like scaling.
- Series whose sizes each ran in a session of their own: a change of the machine looks like scaling.
- Runs far slower than the others of their point: something happened to them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.scaling.measurements import Flag, FlagCode
from hpc_train.scaling.points import KEY, Grouped, bases_of, grouped, rates_by
from hpc_train.scaling.record_arrays import Floats, Ints, Mask, codes, known, numbers
from hpc_train.scaling.runs import OK, UNPARSED

# A slow run is so many standard deviations below the median of its point; the second number makes
# one of a median deviation. It took at least so many times as long as that median.
FAR, NORMAL, LEAST_TIMES = 6.0, 1.4826, 1.1
_LEAST_RUNS = 3


class ApartPoints(NamedTuple):
    """A point, and one it is compared with, as rows of points, and the nodes of each."""

    point: int
    other: int
    nodes: tuple[str, ...]
    others: tuple[str, ...]


class SlowRun(NamedTuple):
    """A run, its point as a row of points with so many runs, and how much longer it took.

    `times` as long as the median of the point.
    """

    run_id: str
    point: int
    runs: int
    times: float


def apart_points(runs: pd.DataFrame, points: pd.DataFrame) -> tuple[ApartPoints, ...]:
    """Return the points on other nodes than those they are compared with.

    From rows of `run_frame` and `speedup_frame`. A point counts if the nodes of all its ok runs are
    known. It is compared with the baseline of its series, and with the point of its size in the
    first series.
    """
    if "node_list" not in runs or not any(runs["node_list"]):
        return ()
    return tuple(apart(runs, grouped(runs).point, _compared(points)))


def apart(
    runs: pd.DataFrame, point: Ints, compared: Iterable[tuple[int, int]]
) -> Iterator[ApartPoints]:
    """Yield the compared points without a common node, each with its repetitions on one set.

    `point` is that of each run.
    """
    ok = (runs["state"] == OK).to_numpy(dtype=bool)
    texts = runs["node_list"].fillna("")[ok].groupby(point[ok]).agg(["nunique", "size", "first"])
    found = {
        number: frozenset(text.split(","))
        for number, different, count, text in texts.itertuples()
        if text and different == 1 and count >= _LEAST_RUNS
    }
    for one, other in compared:
        if one in found and other in found and not found[one] & found[other]:
            yield ApartPoints(one, other, tuple(sorted(found[one])), tuple(sorted(found[other])))


def _compared(points: pd.DataFrame) -> Iterator[tuple[int, int]]:
    """Yield the rows of points that are compared: with the baseline, and with another series."""
    names = [str(name) for name in points["series"]]
    bases: dict[str, int] = {}
    for place in np.flatnonzero(points["is_baseline"].to_numpy(dtype=bool)).tolist():
        bases.setdefault(names[place], place)
    first: dict[tuple[float, ...], int] = {}
    sizes = points[KEY[1:]].astype("Float64").fillna(-1).to_numpy(dtype=np.float64)
    for place, (name, size) in enumerate(zip(names, map(tuple, sizes.tolist()), strict=True)):
        others = (bases.get(name, place), first.setdefault(size, place))
        yield from ((place, other) for other in dict.fromkeys(others) if other != place)


def in_one_session(runs: pd.DataFrame, groups: Grouped) -> Mask:
    """Return which points belong to a series whose points each ran in a session of their own."""
    found = one_session(runs, groups)
    chosen = np.array([label in found for label in groups.labels], dtype=bool)
    return chosen[groups.of_point] if groups.size else np.zeros(0, dtype=bool)


def one_session(runs: pd.DataFrame, groups: Grouped) -> tuple[str, ...]:
    """Return the series whose points, all repeated, ran in times that do not overlap.

    None if another repeated series ran in turns: then the order was random, and this one is chance.
    None either if the start of an ok run is not known.
    """
    started = numbers(runs, "started")
    if np.isnan(started[(runs["state"] == OK).to_numpy(dtype=bool)]).any():
        return ()
    ended = started + np.nan_to_num(groups.ok_only("wall_s"))
    found, in_turns = [], False
    times = pd.DataFrame({"point": groups.point, "started": started, "ended": ended})
    for number, label in enumerate(groups.labels):
        own = times[groups.ok & (groups.series == number)].groupby("point")
        if own.ngroups < 2 or own.size().min() < 2:
            continue
        spans = pd.DataFrame({"first": own["started"].min(), "last": own["ended"].max()})
        spans = spans.sort_values("first")
        if (spans["first"].iloc[1:].to_numpy() >= spans["last"].iloc[:-1].to_numpy()).all():
            found.append(label)
        else:
            in_turns = True
    return () if in_turns else tuple(found)


def slow_runs(runs: pd.DataFrame) -> tuple[SlowRun, ...]:
    """Return the runs far slower than the others of their point, the slowest first.

    From rows of `run_frame`; points of fewer than three runs do not count. The spread is that of
    the median deviation, which slow runs do not change: of all points or of its own, whichever is
    larger. Of simulated studies of 3 to 20 repetitions without a slow run, at most 5 % have one.
    """
    groups = grouped(runs)
    rates = rates_by(groups, bases_of(groups), np.ones(groups.size))
    logs = np.asarray(np.log(rates), dtype=np.float64)
    count = np.bincount(groups.point[~np.isnan(logs)], minlength=groups.size)
    used = np.flatnonzero(~np.isnan(logs) & (count[groups.point] >= _LEAST_RUNS))
    if not len(used):
        return ()
    point, logs = groups.point[used], logs[used]
    below = pd.Series(logs).groupby(point).transform("median").to_numpy() - logs
    apart = pd.Series(np.abs(below))
    own = apart.groupby(point).transform("median").to_numpy()
    # A median of n values lies nearer to them than the middle of the distribution does.
    few = np.sqrt(count[point] / (count[point] - 1))
    spread = NORMAL * few * np.maximum(own, apart.median())
    slow = np.flatnonzero((below > FAR * spread) & (below >= np.log(LEAST_TIMES)))
    names = runs["run_id"].to_numpy()[used]
    return tuple(
        SlowRun(str(names[own]), int(point[own]), int(count[point[own]]), float(np.exp(below[own])))
        for own in slow[np.argsort(-below[slow], kind="stable")].tolist()
    )


# Values per GPU of one series in two groups this far apart differ by a unit, not by their size.
GAP = 200.0
# Rounding of the names of sizes, and of memory in GB.
_MEMORY_TOLERANCE = 1.02
_NOT_THROTTLED = frozenset({"", "no", "none", "false", "0", "not active", "inactive"})
_UNITS = {
    "step_time_s": "s a step", "samples_per_second": "samples/s", "tokens_per_second": "tokens/s",
    "epoch_time_s": "s an epoch", "time_to_train_s": "s to train", "memory_gib": "GiB of memory",
}  # fmt: skip
_RATES = ("samples_per_second", "tokens_per_second")
# Half of what two GPUs should do may be true, a quarter or an eighth between two good sizes not.
_FEWEST_SIZES, _FEWEST_GPUS, _ALIKE = 3, 4, 1.25
_Found = Iterator[tuple[int, Flag]]


def with_implausible(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a flag for each value that is implausible in its series.

    memory: above that of the GPU; MFU: above 1; throttled: recorded so; transport: not that of
    most runs of the series on several nodes, or of the point on one node; unit: a rate, a time or
    memory per GPU that is GAP times or more away from those of most runs of the series. If rates or
    times of one point are that far apart, those with this flag have no result: no mean is theirs.
    """
    ok = np.flatnonzero((runs["state"] == OK).to_numpy(dtype=bool))
    own, added = runs if len(ok) == len(runs) else runs.iloc[ok], defaultdict(list)
    for find in (_memory, _mfu_and_clock, _transports, _units):
        for place, flag in find(own):
            added[int(ok[place])].append(flag)
    if not added:
        return runs
    flags = [(*own, *added.get(place, ())) for place, own in enumerate(runs["flags"])]
    flagged = runs.assign(flags=pd.Series(flags, index=runs.index, dtype=object))
    doubted = {place: f for place, own in added.items() for f in own if f.code == FlagCode.UNIT}
    if not doubted:
        return flagged
    # Those whose unit is not that of other runs of the point have no result.
    is_mixed = _in_two_units(runs)
    why = {
        place: f"the unit may be wrong: {flag.detail}; write the values of all runs in one unit"
        for place, flag in doubted.items()
        if is_mixed[place]
    }
    states = [UNPARSED if run in why else one for run, one in enumerate(runs["state"])]
    problems = [why.get(run, one) for run, one in enumerate(runs["problem"])]
    return flagged.assign(state=states, problem=problems)


def _in_two_units(runs: pd.DataFrame) -> Mask:
    """Whether rates or times of the ok runs at the point of each run are GAP times apart."""
    point, ok = codes([runs[name] for name in KEY]), (runs["state"] == OK).to_numpy(dtype=bool)
    mixed = np.zeros(len(runs), dtype=bool)
    for name, values in _per_gpu(runs).items():
        if name == "memory_gib":
            continue
        own = pd.Series(np.where(ok, _logarithms(values), np.nan)).groupby(point)
        mixed |= (own.transform("max") - own.transform("min") >= np.log10(GAP)).to_numpy(dtype=bool)
    return mixed


def _memory(own: pd.DataFrame) -> _Found:
    gpus, tasks = numbers(own, "gpus_per_node"), numbers(own, "tasks_per_node")
    # A process that drives several GPUs has the memory of all.
    each = np.fmax(gpus / np.where(tasks > 0, tasks, np.nan), 1.0)
    used = numbers(own, "memory_gib")
    if not (used > 0).any():
        return
    from hpc_train.sites.gpu_specs import most_gib

    models = [_text(one, "gpu") or _text(one, "gpu_type") for one in own["conditions"]]
    known = {gpu: (most_gib(gpu) if gpu else None) or np.inf for gpu in dict.fromkeys(models)}
    most = np.array([known[gpu] for gpu in models], dtype=np.float64) * each
    for place in np.flatnonzero((used > 0) & (used > most * _MEMORY_TOLERANCE)).tolist():
        detail = f"{used[place]:.4g} GiB of memory, but {models[place]} has at most {most[place]:g}"
        yield place, Flag(FlagCode.MEMORY, detail)


def _mfu_and_clock(own: pd.DataFrame) -> _Found:
    share = np.fmax(numbers(own, "mfu"), numbers(own, "mfu_computed"))
    for place in np.flatnonzero(share > 1).tolist():
        yield place, Flag(FlagCode.MFU, f"MFU {100 * share[place]:.0f} % of the GPU's peak")
    for place, one in enumerate(own["conditions"]):
        text = _text(one, "throttled")
        if text.lower() not in _NOT_THROTTLED:
            yield place, Flag(FlagCode.THROTTLED, text)


def _transports(own: pd.DataFrame) -> _Found:
    known = np.flatnonzero((own["transport"] != "").to_numpy(dtype=bool)).tolist()
    if not known:
        return
    one_node = own["nodes"].eq(1).fillna(value=False).to_numpy(dtype=bool)
    series, point = codes([own["series"]]), codes([own[name] for name in KEY])
    groups: dict[tuple[bool, int], list[int]] = defaultdict(list)
    for place in known:
        group = point if one_node[place] else series
        groups[bool(one_node[place]), int(group[place])].append(place)
    for places in groups.values():
        names = own["transport"].iloc[places].tolist()
        (usual, most), *rest = Counter(names).most_common()
        if rest and rest[0][1] == most:
            usual = ""
        for place, name in zip(places, names, strict=True):
            if len(set(names)) > 1 and name != usual:
                others = ", ".join(sorted(set(names) - {name}))
                yield place, Flag(FlagCode.TRANSPORT, f"{name}; other runs: {others}")


def _units(own: pd.DataFrame) -> _Found:
    series, found = codes([own["series"]]), dict[int, Flag]()
    for name, values in _per_gpu(own).items():
        shown = numbers(own, name)
        for place, factor in far_from_most(_logarithms(values), series):
            times = f"{10**factor:,.0f}" if 0 < factor < 7 else f"{10**factor:.2g}"
            detail = f"{_digits(shown[place])} {_UNITS[name]}, per GPU {times} times the other runs"
            # A rate that was computed from a wrong time is wrong as well.
            found.setdefault(place, Flag(FlagCode.UNIT, detail))
        if name in _RATES:
            for place in _of_one_gpu(values, _sizes(own), series):
                detail = f"{_digits(shown[place])} {_UNITS[name]} may be that of one GPU"
                found.setdefault(place, Flag(FlagCode.UNIT, detail))
    yield from found.items()


def _of_one_gpu(per_gpu: Floats, sizes: Floats, series: Ints) -> Iterator[int]:
    """Yield the runs of a size whose rate is low by that size, between others that are not."""
    logs = pd.DataFrame({"series": series, "size": np.log(sizes), "rate": _logarithms(per_gpu)})
    for _, own in logs.dropna().groupby("series"):
        rates = own.groupby("size")["rate"].median()
        if len(rates) < _FEWEST_SIZES:
            continue
        for size, rate in rates[rates.index >= np.log(_FEWEST_GPUS) - 1e-9].items():
            others = rates.drop(size)
            lower = np.interp(size, others.index, others) - rate
            if abs(lower - size / np.log(10)) < np.log10(_ALIKE):
                yield from own.index[own["size"] == size]


def _logarithms(values: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.log10(np.where(known(values) > 0, values, np.nan))


def _digits(value: float) -> str:
    """Return four significant digits, without an exponent up to a million."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.4g}"


def _sizes(own: pd.DataFrame) -> Floats:
    size = np.ones(len(own))
    for name in ("nodes", "ranks", "gpus"):
        size = np.where(numbers(own, name) > 0, numbers(own, name), size)
    return size


def _per_gpu(own: pd.DataFrame) -> dict[str, Floats]:
    """Return what hardly depends on the size, for each measure that has a unit."""
    size, batch = _sizes(own), numbers(own, "global_batch")
    with np.errstate(all="ignore"):
        return {
            "step_time_s": numbers(own, "step_time_s") * size / batch,
            **{name: numbers(own, name) / size for name in _RATES},
            **{name: numbers(own, name) * size for name in list(_UNITS)[3:5]},
            "memory_gib": numbers(own, "memory_gib"),
        }


def far_from_most(logarithms: Floats, series: Ints) -> Iterator[tuple[int, float]]:
    """Yield the place of each value far from most of its series, and its logarithm minus theirs.

    That is GAP times away from more than half of the other values.
    """
    known = pd.Series(logarithms).dropna()
    for _, each in known.groupby(series[known.index]):
        own, values = each.index.to_numpy(), each.to_numpy()
        if values.max() - values.min() < np.log10(GAP):
            continue
        far = np.abs(values[:, None] - values) >= np.log10(GAP)
        for at in np.flatnonzero(2 * far.sum(axis=1) > len(own) - 1).tolist():
            yield int(own[at]), float(values[at] - np.median(values[far[at]]))


def _text(conditions: Any, field: str) -> str:
    found = conditions.get(field) if isinstance(conditions, Mapping) else None
    return "" if found is None else str(found).strip()
