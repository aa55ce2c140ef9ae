"""Points -> the series that did the same work, and one baseline for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.baseline_and_half_size_points import matching_runs
from hpc_train.scaling.comparison import MUST_MATCH
from hpc_train.scaling.condition_differences import difference
from hpc_train.scaling.group_reductions import Floats, levels_of, most, numbers
from hpc_train.scaling.points import Grouped, sizes_of
from hpc_train.scaling.record_arrays import Ints, Mask
from hpc_train.scaling.scaling_regime import ROUNDED

_AXIS = "axis."
_BATCH = "global_batch"


def comparable_series(groups: Grouped, study: ExpectedStudy, columns: Mapping[str, Any]) -> Ints:
    """Return the number of each point's class: the speeds of its series can be compared.

    The series of a class agree in basis, regime and batch (weak scaling: batch per rank), and in
    the fields of MUST_MATCH and the parameters, as far as they are recorded. A series that has no
    size in common with another one is alone: the size may make the difference. `columns` has
    `regime` and `basis` of the points.
    """
    fields = [f for f in (*MUST_MATCH, "parameters") if f not in study.allow_mixed]
    works = _recorded(groups, fields)
    for name, texts in _per_series(groups, columns, fields).items():
        for work, text in zip(works, texts, strict=True):
            if text:
                work[name] = text
    of_series = np.array(classes_of(works), dtype=np.int64)
    sizes = np.stack([np.nan_to_num(column[groups.first]) for column in sizes_of(groups.runs)])
    size = np.unique(sizes, axis=1, return_inverse=True)[1].reshape(-1)
    points = pd.DataFrame({"size": size, "class": of_series[groups.of_point]})
    shared = points.groupby(["size", "class"])["size"].transform("size").to_numpy() > 1
    shares = np.bincount(groups.of_point, shared, minlength=len(groups.labels)) > 0
    alone = len(of_series) + np.arange(len(of_series))
    found: Ints = np.where(shares, of_series, alone)[groups.of_point]
    return found


def classes_of(works: Sequence[dict[str, str]]) -> list[int]:
    """Return the class of each set of facts: those of a class do not contradict one another."""
    classes: list[dict[str, str]] = []
    known: dict[tuple[tuple[str, str], ...], int] = {}
    found = []
    for work in works:
        key = tuple(work.items())
        if key not in known:
            known[key] = _class_of(work, classes)
        found.append(known[key])
    return found


def common_baselines(groups: Grouped, study: ExpectedStudy, of_point: Ints, rate: Floats) -> Ints:
    """Return the baseline that all series of a class share; -1 if one of them has a result.

    It is the fastest point of the smallest size that has a result, among the points with the values
    of `study.baseline`. `rate` is the mean rate of each point, NaN without a result. A point of an
    unknown size is not compared.
    """
    wanted = np.zeros(groups.size, dtype=bool)
    wanted[groups.point[matching_runs(groups.runs, study.baseline)]] = True
    gpus, ranks, nodes = (column[groups.first] for column in sizes_of(groups.runs))
    sized = ~(np.isnan(gpus) & np.isnan(ranks) & np.isnan(nodes))
    candidates = np.flatnonzero(wanted & sized & ~np.isnan(rate))
    keys = (-rate, nodes, ranks, gpus)
    order = candidates[np.lexsort([key[candidates] for key in keys])]
    base = np.full(int(of_point.max(initial=-1)) + 1, -1, dtype=np.int64)
    found, place = np.unique(of_point[order], return_index=True)
    base[found] = order[place]
    return np.where(sized & with_several(groups, of_point, rate), base[of_point], -1)


def with_several(groups: Grouped, of_point: Ints, rate: Floats) -> Mask:
    """Return which points are of a class in which several series have a result."""
    known = ~np.isnan(rate)
    pairs = np.unique(np.stack([of_point[known], groups.of_point[known]]), axis=1)
    several: Mask = np.bincount(pairs[0], minlength=int(of_point.max(initial=-1)) + 1) > 1
    return several[of_point]


def _class_of(work: dict[str, str], classes: list[dict[str, str]]) -> int:
    """Return the first class without a difference, and add to it the fields that it lacks."""
    for number, other in enumerate(classes):
        if difference(work, other, tuple(work)) is None:
            classes[number] = {**work, **other}
            return number
    classes.append(dict(work))
    return len(classes) - 1


def _recorded(groups: Grouped, fields: Sequence[str]) -> list[dict[str, str]]:
    """Return the first recorded value of each field, for each series; an axis is recorded too."""
    found: list[dict[str, str]] = [{} for _ in groups.labels]
    if "conditions" in groups.runs:
        for series, own in zip(groups.series.tolist(), groups.runs["conditions"], strict=True):
            for field in fields if isinstance(own, Mapping) else ():
                if own.get(field) not in (None, ""):
                    found[series].setdefault(field, str(own[field]))
    for column in map(str, groups.runs):
        field = column.rpartition(".")[2]
        if column.startswith(_AXIS) and field in fields and field != _BATCH:
            last = np.flatnonzero(~pd.Series(groups.series).duplicated(keep="last"))
            values = groups.runs[column].iloc[last]
            for series, value in zip(groups.series[last].tolist(), values, strict=True):
                found[series][field] = str(value)
    return found


def _per_series(
    groups: Grouped, columns: Mapping[str, Any], fields: Sequence[str]
) -> dict[str, list[str]]:
    """Return basis, regime and batch of each series as texts; empty if unknown."""
    point = np.zeros(len(groups.labels), dtype=np.int64)
    point[groups.of_point] = np.arange(groups.size)
    found = {name: [str(columns[name][one]) for one in point] for name in ("basis", "regime")}
    if _BATCH in fields:
        weak = np.array([regime == "weak" for regime in found["regime"]], dtype=bool)
        batch = groups.ok_only("global_batch")
        ranks = numbers(groups.runs, "ranks")
        share = np.where(ranks > 0, batch / np.where(ranks > 0, ranks, 1.0), np.nan)
        values = np.where(weak[groups.series], share, batch)
        level = levels_of(most(values, groups.series, len(groups.labels)), ROUNDED)
        found[_BATCH] = [str(one) if one >= 0 else "" for one in level.tolist()]
    return found
