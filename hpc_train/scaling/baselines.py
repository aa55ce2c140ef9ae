"""Points -> those that each is compared with: its baseline, half its size, other series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.jobs.study import axis_name
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.comparison import MUST_MATCH
from hpc_train.scaling.group_reductions import Floats, Ints, Mask, codes, levels_of, numbers, over
from hpc_train.scaling.points import TO_TRAIN, Grouped, not_ok
from hpc_train.scaling.runs import OK
from hpc_train.scaling.scaling_regime import ROUNDED, batches
from hpc_train.scaling.split_series import compared, difference, merged

_AXIS = "axis."
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
