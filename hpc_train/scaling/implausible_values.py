"""Run table -> flags of values that cannot be right, or that do not belong to their series."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.scaling.group_reductions import Floats, Ints, Mask, codes, known, numbers
from hpc_train.scaling.points import KEY
from hpc_train.scaling.run_flags import Flag, FlagCode
from hpc_train.scaling.runs import OK, UNPARSED
from hpc_train.sites.gpu_specs import most_gib

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
