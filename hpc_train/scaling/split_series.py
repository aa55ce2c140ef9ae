"""Runs -> series of comparable runs: their regime (strong, weak) and the baseline of each point."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import ne
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError, nearest
from hpc_train.base.metrics import BASES
from hpc_train.jobs.study import Scaling, axis_name, narrowed
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.points import KEY, TO_TRAIN, Grouped, not_ok
from hpc_train.scaling.record_arrays import (
    NAN,
    SAME,
    Floats,
    Ints,
    Mask,
    agree,
    codes,
    filled,
    levels_of,
    moments,
    numbers,
    over,
)
from hpc_train.scaling.runs import OK

# The most informative first: a series is named after the first field that differs.
FIELDS = (
    "parser", "counted", "model", "parameters", "data", "sequence_length", "precision", "layout",
    "tensor_parallel", "pipeline_parallel", "torch", "cuda", "nccl", "nccl2", "nccl_plugin",
    "partition", "gpu", "container", "commit", "dirty", "command", "template", "modules",
)  # fmt: skip
# Padding of the vocabulary grows with tensor parallelism.
_NEAR = {"parameters": 0.05}
# Fields without which a ratio of speeds has no meaning; other conditions may be compared.
MUST_MATCH = ("model", "data", "dataset", "global_batch", "parser", "counted", "sequence_length")
_AXIS = "axis."
# A run with it is flagged, not put into another series.
_FLAGGED = frozenset({"throttled"})
_SHOWN = 4
_NUMBER = re.compile(r"\d{1,15}(?:\.\d+)?(?:e\+?\d{1,2})?", re.IGNORECASE)
_WIDTHS = (24, 48, 200)


class Separated(NamedTuple):
    """The runs with their comparable series, and a sentence for each reason to split."""

    runs: pd.DataFrame
    notes: tuple[str, ...]


def compared(runs: pd.DataFrame, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the recorded fields that must match, the usual ones first.

    Those that are allowed to differ or are axes need not. An axis sets a field whose name is the
    axis' own or its last word: `training.precision`.

    Raises:
        ReportError: a field that is allowed to differ does not exist.
    """
    conditions = runs["conditions"] if "conditions" in runs else ()
    seen = {f for own in conditions if isinstance(own, Mapping) for f in own} - _FLAGGED
    fields = [*(field for field in FIELDS if field in seen), *sorted(seen.difference(FIELDS))]
    known = dict.fromkeys((*FIELDS, *fields))
    for name in allowed:
        if name not in known:
            raise ReportError(
                f"--allow-mixed {name}: no such field{nearest(name, known)}",
                f"allowed: {', '.join(known)}",
            )
    axes = [str(name).removeprefix(_AXIS) for name in runs if str(name).startswith(_AXIS)]
    free = {*allowed, *axes, *(axis.rpartition(".")[2] for axis in axes)}
    return tuple(field for field in fields if field not in free)


def levels(field: str, values: Sequence[str | None]) -> Ints:
    """Number the different values of a field; -1 if there is none.

    Numbers of parameters count as the same within 5 %.
    """
    near = _NEAR.get(field)
    if near is not None:
        texts: Any = np.array(values, dtype=object)
        sizes = np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)
        sizes = np.where(sizes > 0, sizes, NAN)
        if np.isnan(sizes).sum() == list(values).count(None):
            return levels_of(sizes, near)
    return pd.factorize(np.array(values, dtype=object))[0].astype(np.int64)


def merged(runs: pd.DataFrame, places: Ints, fields: Sequence[str]) -> dict[str, str]:
    """Return the first recorded value of each field among some runs."""
    found: dict[str, str] = {}
    if fields:
        for own in runs["conditions"].iloc[places]:
            if isinstance(own, Mapping):
                found = {**own, **found}
    return {field: str(found[field]) for field in fields if found.get(field) not in (None, "")}


def difference(
    own: Mapping[str, str], other: Mapping[str, str], fields: Sequence[str]
) -> str | None:
    """Return the first field that both sets of conditions contain with different values."""
    for field in fields:
        if field in own and field in other:
            one, two = levels(field, (own[field], other[field]))
            if one != two:
                return field
    return None


def separated(runs: pd.DataFrame, study: ExpectedStudy) -> Separated:
    """Split each series by the fields that must match, unless they are allowed to differ.

    First by the recorded conditions, then by the global batch where runs of one point have several.
    A run that did not record a field goes with the other runs of its point, else of its series.
    Where a series was split, the table gets a column `series_asked` (its name before).

    Raises:
        ReportError: `study.allow_mixed` names a field that does not exist.
    """
    fields = compared(runs, study.allow_mixed)
    series, point = codes([runs["series"]]), codes([runs[name] for name in KEY])
    asked = [str(name) for name in runs["series"]]
    names, parts = asked, series
    notes, silent = [], []
    for field in fields:
        own = _recorded(runs, field, series)
        absent = int(((own.level < 0) & (runs["state"] == OK).to_numpy(dtype=bool)).sum())
        silent += [f"{field} ({_runs(absent)})"] if absent else []
        if not own.inside.any():
            continue
        census = [f"{text} ({_runs(n)}, {name})" for text, n, name in own.census]
        shown = [*census[:_SHOWN], *[f"{len(census) - _SHOWN} more"] * (len(census) > _SHOWN)]
        notes.append(
            f"{field} differs: {', '.join(shown)}: separate series; "
            f"--allow-mixed {field} combines them"
        )
        level = np.where(own.inside, filled(own.level, point, series), -1)
        finer = codes([pd.Series(parts), pd.Series(level)])
        split, before = (_counted(pd.Series(some), series) for some in (finer, parts))
        labels = own.labels(level)
        named = np.where(split > before, level, -1).tolist()
        names = [
            name if one < 0 else narrowed(name, field, labels[one])
            for name, one in zip(names, named, strict=True)
        ]
        parts = finer
    batch, reasons = batch_split(runs.assign(series=names), study.scaling)
    notes += reasons
    for field in dict.fromkeys(study.allow_mixed) if "conditions" in runs else ():
        own = _recorded(runs, field, series)
        if own.inside.any():
            census = [f"{text} ({_runs(n)})" for text, n, _ in own.census]
            notes.append(f"allowed to differ: {field}: {', '.join(census)}")
    if silent:
        notes.append(f"not recorded by every run, assumed to match: {', '.join(silent)}")
    if batch == asked:
        return Separated(runs, tuple(notes))
    whole = runs.assign(series=batch, series_asked=runs["series"])
    return Separated(whole, tuple(notes))


class _Recorded(NamedTuple):
    """One condition of the runs: its text, the level of that, -1 for none, and the run's id.

    `inside`: the run is of a series with several known levels.
    """

    field: str
    texts: list[str | None]
    level: Ints
    inside: Mask
    names: Sequence[str]

    def labels(self, level: Ints) -> dict[int, str]:
        """Return the texts of these levels, shortened as far as they remain distinct."""
        first = dict(zip(reversed(self.level.tolist()), reversed(self.texts), strict=True))
        known = {n: first[n] or "" for n in sorted({*level.tolist()} - {-1})}
        if self.field == "parameters":
            known = {n: _with_unit(text) for n, text in known.items()}
        for width in _WIDTHS:
            cut = {n: text[:width] for n, text in known.items()}
            if len({*cut.values()}) == len({*known.values()}):
                return cut
        return known

    @property
    def census(self) -> list[tuple[str, int, str]]:
        """Text, number of runs and a run of each level within the series that differ."""
        chosen = self.inside & (self.level >= 0)
        own = pd.DataFrame({"level": self.level, "name": self.names})[chosen]
        each = own.groupby("level", sort=False)["name"].agg(["size", "first"])
        labels = self.labels(self.level[chosen])
        return [(labels[n], count, str(name)) for n, count, name in each.itertuples()]


def _recorded(runs: pd.DataFrame, field: str, series: Ints) -> _Recorded:
    texts = [
        str(own[field]) if isinstance(own, Mapping) and own.get(field) not in (None, "") else None
        for own in runs["conditions"]
    ]
    level = levels(field, texts)
    inside = _counted(pd.Series(level).where(level >= 0), series) > 1
    return _Recorded(field, texts, level, inside, runs["run_id"].tolist())


def _counted(values: pd.Series[Any], series: Ints) -> Mask:
    """Return for each run how many different values its series has."""
    return values.groupby(series).transform("nunique").to_numpy()


def _with_unit(text: str) -> str:
    """Return a number of parameters as `7 B` or `124 M`."""
    for factor, unit in ((1e9, "B"), (1e6, "M")):
        if _NUMBER.fullmatch(text) and float(text) >= factor:
            return f"{float(text) / factor:.3g} {unit}"
    return text


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"


def batch_split(runs: pd.DataFrame, declared: Scaling | None) -> tuple[list[str], list[str]]:
    """Return the name of each run's series, split where a point has several batches, and why.

    A series is split by global batch or by batch per rank, whichever leaves fewer parts of one
    size; a declared regime decides. Runs of different batches are never averaged.
    """
    names = [str(name) for name in runs["series"]]
    before = np.array(names, dtype=object)
    ok = (runs["state"] == OK).to_numpy(dtype=bool)
    batch = np.where(ok, batch_column(runs).to_numpy(dtype=np.float64, na_value=np.nan), np.nan)
    point = codes([runs[name] for name in KEY])
    notes = []
    each = pd.Series(batch).groupby(point)
    high = each.transform("max")
    several = (high - each.transform("min") > SAME * high).to_numpy(dtype=bool)
    for label in dict.fromkeys(before[several].tolist()):
        own = np.flatnonzero(before == label)
        field, values, level = _split(batch[own], numbers(runs, "ranks")[own], point[own], declared)
        level = filled(level, point[own], np.zeros(len(own), dtype=np.int64))
        _, first, place = np.unique(level, return_index=True, return_inverse=True)
        parts = [narrowed(label, field, f"{value:g}") for value in values[first].tolist()]
        for run, part in zip(own.tolist(), place.tolist(), strict=True):
            names[run] = parts[part]
        notes.append(
            f"runs of one size have different global batches ({batches(runs.iloc[own])}): separate "
            f"series by {field}, because they are not averaged"
        )
    return names, notes


def _split(
    batch: Floats, ranks: Floats, point: Ints, declared: Scaling | None
) -> tuple[str, Floats, Ints]:
    share = batch / ranks
    ways = [
        ("global_batch", batch, levels_of(batch, SAME)),
        ("batch_per_rank", share, levels_of(share, SAME)),
    ]
    if np.isnan(share[~np.isnan(batch)]).any():
        return ways[0]
    if declared is not None:
        return ways[declared == "weak"]

    def alone(level: Ints) -> int:
        """Return the number of levels that were measured at one size only."""
        sizes = pd.Series(ranks[level >= 0]).groupby(level[level >= 0]).nunique()
        return int((sizes == 1).sum())

    return min(ways, key=lambda way: alone(way[2]))


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


_BATCH = "global_batch"


class Baselines(NamedTuple):
    """The baseline of each point; -1 with a reason if there is none."""

    point: Ints
    note: list[str]


def baselines(groups: Grouped, study: ExpectedStudy) -> Baselines:
    """Find the baseline of each series: the smallest point with the wanted axis values.

    A baseline that names another series (`launcher:
    srun`) is used for all series with its conditions, but never for a series that was split off
    from its own. Such a part is not its own baseline if it has a single size and the others have a
    smaller one.
    """
    runs, series, first = groups.runs, groups.of_point, groups.first
    asked = codes([runs["series_asked"]])[first] if "series_asked" in runs else series
    wanted = _wanted(groups, study)
    gpus, ranks, nodes = groups.sizes
    order = [p for p in np.lexsort((first, nodes, ranks, gpus)).tolist() if wanted[p]]
    smallest = {int(series[point]): point for point in reversed(order)}
    of_asked = {int(asked[point]): point for point in reversed(order)}
    size = codes([pd.Series(column) for column in groups.sizes])
    fields = compared(runs, study.allow_mixed)
    of_series = pd.Series(groups.series).groupby(groups.series).indices
    base, notes = np.full(groups.size, -1, dtype=np.int64), [""] * groups.size
    for number, own in pd.Series(series).groupby(series).indices.items():
        found, note = smallest.get(number, -1), ""
        other = of_asked.get(int(asked[own[0]]), -1)
        alone = len(set(size[own].tolist())) == 1 and other >= 0 and series[other] != number
        if found < 0 or (alone and size[other] != size[own[0]]):
            members = of_series[number]
            is_own, found = found >= 0, -1
            here = merged(runs, members, fields)
            for point in (point for point in order if series[point] != number):
                there = merged(runs, np.flatnonzero(groups.point == point), fields)
                field = difference(here, there, fields)
                if field is None and not is_own and asked[point] != asked[own[0]]:
                    found, note = point, ""
                    break
                note = note or _apart(runs, members, int(first[point]), (field, here, there))
            if not order:
                values = ", ".join(f"{name}={value}" for name, value in study.baseline.items())
                note = f"no speedup: no point has the baseline's values ({values})"
        base[own] = found
        for point in own.tolist():
            notes[point] = note
    return Baselines(base, notes)


def _wanted(groups: Grouped, study: ExpectedStudy) -> Mask:
    """Return which points have the values of the study's baseline."""
    wanted = np.zeros(groups.size, dtype=bool)
    wanted[groups.point[matching_runs(groups.runs, study.baseline)]] = True
    return wanted


def _apart(
    runs: pd.DataFrame,
    members: Ints,
    run: int,
    found: tuple[str | None, Mapping[str, Any], Mapping[str, Any]],
) -> str:
    field, here, there = found
    one, other = (runs["run_id"].iloc[place] for place in (run, members[0]))
    if field is None:
        return (
            f"no speedup: the baseline has another global batch "
            f"({batches(runs.iloc[[run, *members]])})"
        )
    return (
        f"no speedup: {field} is {there[field]} at the baseline ({one}) and {here[field]} here "
        f"({other}); --allow-mixed {field} compares them"
    )


def matching_runs(runs: pd.DataFrame, wanted: Mapping[str, Any]) -> Mask:
    """Return which runs have the wanted values of axes or sizes."""
    keep = np.ones(len(runs), dtype=bool)
    for key, value in wanted.items():
        name = axis_name(key)
        column = f"axis.{name}" if f"axis.{name}" in runs else name
        if column not in runs:
            return keep & False
        code, different = pd.factorize(runs[column])
        same = [not pd.isna(own) and (own == value or str(own) == str(value)) for own in different]
        keep &= np.array([*same, False], dtype=bool)[code]
    return keep


def halves(groups: Grouped) -> Ints:
    """Return the point with half the GPUs (ranks where there are no GPUs), -1 without.

    Of several, the one with as many GPUs on each node, and of those with as many tasks; else the
    one on as many nodes, else the first.
    """
    gpus, ranks, nodes = groups.sizes
    each = (
        numbers(groups.runs, name)[groups.first] for name in ("gpus_per_node", "tasks_per_node")
    )
    alike = list(zip(*(column.tolist() for column in (*each, nodes)), strict=True))
    size, kind = np.where(gpus > 0, gpus, ranks).tolist(), (gpus > 0).tolist()
    keys = list(zip(groups.of_point.tolist(), kind, size, strict=True))
    at: dict[tuple[int, bool, float], list[int]] = {}
    for point, key in enumerate(keys):
        at.setdefault(key, []).append(point)
    half = np.full(groups.size, -1, dtype=np.int64)
    for point, (own, counted, number) in enumerate(keys):
        if found := at.get((own, counted, number / 2)):
            half[point] = min(found, key=lambda other: [*map(ne, alike[other], alike[point])])
    return half


def refused(
    groups: Grouped, base: Baselines, usable: Floats, columns: Mapping[str, Any]
) -> Baselines:
    """Remove the baseline without a `usable` run, and that of other batches than its points."""
    point, notes = base.point.copy(), list(base.note)
    reasons: dict[int, str] = {}
    for own, series in enumerate(groups.of_point.tolist()):
        mixed = columns["regime"][own] == "mixed" and columns["basis"][own] != TO_TRAIN
        if not mixed and (point[own] < 0 or usable[own]):
            continue
        if series not in reasons:
            reasons[series] = (
                "no speedup: batch and size change together: the global batch is "
                + batches(groups.runs[groups.series == series])
                if mixed
                else _without(groups.runs[groups.point == point[own]], columns["basis"][own])
            )
        point[own], notes[own] = -1, reasons[series]
    return Baselines(point, notes)


def _without(own: pd.DataFrame, basis: str) -> str:
    states = Counter(str(state) for state in own["state"] if state != OK)
    names = ", ".join(map(str, own["run_id"]))
    if states:
        return f"no speedup: the baseline has no ok run ({not_ok(states)}: {names})"
    return f"no speedup: the baseline states no {basis} ({names})"


def comparable_series(groups: Grouped, study: ExpectedStudy, columns: Mapping[str, Any]) -> Ints:
    """Return the number of each point's class: the speeds of its series can be compared.

    The series of a class agree in basis, regime and batch (weak scaling: batch per rank), and in
    the fields of MUST_MATCH and the parameters, as far as they are recorded. A series that has no
    size in common with another one is alone: the size may make the difference. `columns` has
    `regime` and `basis` of the points.
    """
    fields = [f for f in (*MUST_MATCH, "parameters") if f not in study.allow_mixed]
    works = _works(groups, columns, fields)
    classes: list[dict[str, str]] = []
    known: dict[tuple[tuple[str, str], ...], int] = {}
    for work in works:
        if (key := tuple(work.items())) not in known:
            known[key] = _class_of(work, classes)
    of_series = np.array([known[tuple(work.items())] for work in works], dtype=np.int64)
    size = codes([pd.Series(np.nan_to_num(column)) for column in groups.sizes])
    points = pd.DataFrame({"size": size, "class": of_series[groups.of_point]})
    shared = points.groupby(["size", "class"])["size"].transform("size").to_numpy() > 1
    shares = np.bincount(groups.of_point, shared, minlength=len(groups.labels)) > 0
    alone = len(of_series) + np.arange(len(of_series))
    return np.where(shares, of_series, alone)[groups.of_point]


def _class_of(work: dict[str, str], classes: list[dict[str, str]]) -> int:
    """Return the first class without a difference, and add to it the fields that it lacks."""
    for number, other in enumerate(classes):
        if difference(work, other, tuple(work)) is None:
            classes[number] = {**work, **other}
            return number
    classes.append(dict(work))
    return len(classes) - 1


def _works(
    groups: Grouped, columns: Mapping[str, Any], fields: Sequence[str]
) -> list[dict[str, str]]:
    """Return basis, regime, batch and the first recorded value of each field, for each series.

    An axis is recorded too.
    """
    found: list[dict[str, str]] = [{} for _ in groups.labels]
    runs, series = groups.runs, groups.series.tolist()
    for number, own in zip(series, runs["conditions"], strict=True) if "conditions" in runs else ():
        for field in fields if isinstance(own, Mapping) else ():
            if own.get(field) not in (None, ""):
                found[number].setdefault(field, str(own[field]))
    for column in map(str, runs):
        field = column.rpartition(".")[2]
        if column.startswith(_AXIS) and field in fields and field != _BATCH:
            # The last run of a series counts.
            for number, value in dict(zip(series, runs[column], strict=True)).items():
                found[number][field] = str(value)
    last = dict(zip(groups.of_point.tolist(), range(groups.size), strict=True))
    for number, work in enumerate(found):
        work |= {name: str(columns[name][last[number]]) for name in ("basis", "regime")}
    if _BATCH in fields:
        _add_batches(groups, found)
    return found


def _add_batches(groups: Grouped, works: Sequence[dict[str, str]]) -> None:
    """Add the number of the global batch, or of the batch per rank where scaling is weak."""
    weak = np.array([work["regime"] == "weak" for work in works], dtype=bool)
    batch, ranks = groups.ok_only(_BATCH), numbers(groups.runs, "ranks")
    share = batch / np.where(ranks > 0, ranks, np.nan)
    values = np.where(weak[groups.series], share, batch)
    most = over("max", values, groups.series, len(groups.labels))
    for work, level in zip(works, levels_of(most, ROUNDED).tolist(), strict=True):
        if level >= 0:
            work[_BATCH] = str(level)


def with_several(groups: Grouped, of_point: Ints, rate: Floats) -> Mask:
    """Return which points are of a class in which several series have a result."""
    measured = pd.Series(groups.of_point).where(~np.isnan(rate))
    return (measured.groupby(of_point).transform("nunique") > 1).to_numpy(dtype=bool)
