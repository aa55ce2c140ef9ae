"""Points -> the points that each is compared with: its baseline, and that of half its size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import ne
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.jobs.study import axis_name
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.condition_differences import compared, difference, merged
from hpc_train.scaling.group_reductions import Floats, numbers
from hpc_train.scaling.points import TO_TRAIN, Grouped, not_ok, sizes_of
from hpc_train.scaling.record_arrays import Ints, Mask, codes, packed
from hpc_train.scaling.runs import OK
from hpc_train.scaling.scaling_regime import batches


class Baselines(NamedTuple):
    """The baseline of each point; -1 with a reason if there is none."""

    point: Ints
    note: list[str]


class _Parts(NamedTuple):
    """The series of each run, the one before it was split, and the candidates for a baseline."""

    runs: pd.DataFrame
    groups: Grouped
    series: Ints
    asked: Ints
    candidates: Ints
    fields: tuple[str, ...]


def baselines(groups: Grouped, study: ExpectedStudy) -> Baselines:
    """Find the baseline of each series: the smallest point with the wanted axis values.

    A baseline that names another series (`launcher:
    srun`) is used for all series with its conditions, but never for a series that was split off
    from its own. Such a part is not its own baseline if it has a single size and the others have a
    smaller one.
    """
    runs = groups.runs
    series = codes([runs["series"]])
    asked = codes([runs["series_asked"]]) if "series_asked" in runs else series
    order = _candidates(groups, study)
    fields = compared(runs, study.allow_mixed)
    parts = _Parts(runs, groups, series, asked, order, fields)
    own = _first(order, series)
    notes = [""] * len(own)
    for number in np.flatnonzero((own < 0) | _left_alone(parts, _first(order, asked))):
        own[number], notes[number] = _borrowed(parts, int(number), bool(own[number] >= 0))
        if not len(order):
            wanted_values = ", ".join(f"{name}={value}" for name, value in study.baseline.items())
            notes[number] = f"no speedup: no point has the baseline's values ({wanted_values})"
    base = np.append(groups.point, -1)[own]
    of_point = series[groups.first]
    return Baselines(base[of_point], [notes[number] for number in of_point])


def _candidates(groups: Grouped, study: ExpectedStudy) -> Ints:
    """Return the first run of each point with the wanted values, the smallest size first."""
    wanted = np.flatnonzero(matching_runs(groups.runs, study.baseline))
    first: Ints = wanted[~pd.Series(groups.point[wanted]).duplicated().to_numpy()]
    order: Ints = np.lexsort([size[first] for size in reversed(sizes_of(groups.runs))])
    found: Ints = first[order]
    return found


def _first(order: Ints, group: Ints) -> Ints:
    """Return the first run of each group, in that order; -1 for none."""
    first = np.full(int(group.max(initial=-1)) + 1, -1, dtype=np.int64)
    # The last run that is written remains.
    first[group[order[::-1]]] = order[::-1]
    return first


def _left_alone(parts: _Parts, smallest: Ints) -> Mask:
    """Whether each series is a part of a single size, and another part has the smallest size."""
    groups = parts.groups
    # The runs of a point are of one size.
    size = codes([pd.Series(column[groups.first]) for column in sizes_of(parts.runs)])
    series = parts.series[groups.first]
    first = ~pd.Series(packed(series, size)).duplicated().to_numpy()
    one_size = np.bincount(series[first]) == 1
    own = _first(np.sort(groups.first), parts.series)
    base = smallest[parts.asked[own]]
    here, there = (size[groups.point[runs]] for runs in (own, base))
    elsewhere = (base >= 0) & (parts.series[base] != parts.series[own]) & (there != here)
    alone: Mask = one_size & elsewhere
    return alone


def _borrowed(parts: _Parts, number: int, alone: bool) -> tuple[int, str]:
    """Return a run of a baseline point in another series, or -1 and the reason."""
    members, point = np.flatnonzero(parts.series == number), parts.groups.point
    here = merged(parts.runs, members, parts.fields)
    refused = ""
    for run in parts.candidates:
        if parts.series[run] == number:
            continue
        there = merged(parts.runs, np.flatnonzero(point == point[run]), parts.fields)
        field = difference(here, there, parts.fields)
        if field is None and not alone and parts.asked[run] != parts.asked[members[0]]:
            return int(run), ""
        refused = refused or _apart(parts, members, int(run), (field, here, there))
    return -1, refused


def _apart(
    parts: _Parts,
    members: Ints,
    run: int,
    found: tuple[str | None, Mapping[str, Any], Mapping[str, Any]],
) -> str:
    field, here, there = found
    one, other = (parts.runs["run_id"].iloc[place] for place in (run, members[0]))
    if field is None:
        return (
            f"no speedup: the baseline has another global batch "
            f"({batches(parts.runs.iloc[[run, *members]])})"
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
        same = [*(_same(own, value) for own in different), False]
        keep &= np.array(same, dtype=bool)[code]
    return keep


def _same(own: object, wanted: object) -> bool:
    return not pd.isna(own) and (own == wanted or str(own) == str(wanted))  # type: ignore[call-overload]


def halves(groups: Grouped) -> Ints:
    """Return the point with half the GPUs (ranks where there are no GPUs), -1 without.

    Of several, the one with as many GPUs on each node, and of those with as many tasks; else the
    one on as many nodes, else the first.
    """
    gpus, ranks, nodes = (column[groups.first] for column in sizes_of(groups.runs))
    size = np.where(gpus > 0, gpus, ranks)
    each = (
        numbers(groups.runs, name)[groups.first] for name in ("gpus_per_node", "tasks_per_node")
    )
    alike = list(zip(*(column.tolist() for column in (*each, nodes)), strict=True))
    series, kind = groups.of_point.tolist(), (gpus > 0).tolist()
    at: dict[tuple[int, bool, float], list[int]] = {}
    keys = list(zip(series, kind, size.tolist(), strict=True))
    for point, key in enumerate(keys):
        at.setdefault(key, []).append(point)
    half = np.full(groups.size, -1, dtype=np.int64)
    for point, (own, counted, number) in enumerate(keys):
        found = at.get((own, counted, number / 2), ())
        if found:
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
