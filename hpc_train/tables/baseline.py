"""Points -> the baseline of each series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.model.measurement import ExpectedStudy
from hpc_train.tables.conditions import compared, difference, merged
from hpc_train.tables.moments import Bools, Codes, codes
from hpc_train.tables.points import Grouped, sizes_of
from hpc_train.tables.regime import batches
from hpc_train.tables.series import axis_name


class Baselines(NamedTuple):
    """The baseline of each point, -1 if there is none, and then the reason."""

    point: Codes
    note: list[str]


class _Parts(NamedTuple):
    """The series of each run, the one before it was split, and the candidates for a baseline."""

    runs: pd.DataFrame
    point: Codes
    series: Codes
    asked: Codes
    candidates: Codes
    fields: tuple[str, ...]


def baselines(groups: Grouped, study: ExpectedStudy, column: str = "series") -> Baselines:
    """Find the baseline of each series: the smallest point with the wanted axis values.

    `column` says which runs make up a series. A baseline that names another series
    (`launcher: srun`) serves all of them that have its conditions; never a series which was parted
    from its own. Such a part is not its own baseline where it has a single size and the others
    have a smaller one.
    """
    runs = groups.runs
    series = codes([runs[column if column in runs else "series"]])
    asked = codes([runs["series_asked"]]) if "series_asked" in runs else series
    wanted = np.flatnonzero(_matches(runs, study.baseline))
    order = wanted[np.lexsort([size[wanted] for size in reversed(sizes_of(runs))])]
    _, first = np.unique(groups.point[order], return_index=True)
    fields = compared(runs, study.allow_mixed)
    parts = _Parts(runs, groups.point, series, asked, order[np.sort(first)], fields)
    own = _first(order, series)
    notes = [""] * len(own)
    for number in np.flatnonzero((own < 0) | _left_alone(parts, _first(order, asked))):
        own[number], notes[number] = _borrowed(parts, int(number), bool(own[number] >= 0))
        if not len(order):
            said = ", ".join(f"{name}={value}" for name, value in study.baseline.items())
            notes[number] = f"no speedup: no point has the baseline's values ({said})"
    base = np.append(groups.point, -1)[own]
    of_point = series[groups.first]
    return Baselines(base[of_point], [notes[number] for number in of_point])


def _first(order: Codes, group: Codes) -> Codes:
    """Return the first run, in that order, of each group; -1 without."""
    first = np.full(int(group.max(initial=-1)) + 1, -1, dtype=np.int64)
    found, place = np.unique(group[order], return_index=True)
    first[found] = order[place]
    return first


def _left_alone(parts: _Parts, smallest: Codes) -> Bools:
    """Whether each series is a part of a single size, and another part has the smallest size."""
    size = codes([pd.Series(column) for column in sizes_of(parts.runs)])
    pairs = np.unique(np.stack([parts.series, size]), axis=1)
    one_size = np.bincount(pairs[0], minlength=int(parts.series.max(initial=-1)) + 1) == 1
    own = _first(np.arange(len(size)), parts.series)
    base = smallest[parts.asked[own]]
    elsewhere = (base >= 0) & (parts.series[base] != parts.series[own]) & (size[base] != size[own])
    alone: Bools = one_size & elsewhere
    return alone


def _borrowed(parts: _Parts, number: int, alone: bool) -> tuple[int, str]:
    """Return a run of another series' point that can count as 1, or -1 and why none can."""
    members = np.flatnonzero(parts.series == number)
    here = merged(parts.runs, members, parts.fields)
    refused = ""
    for run in parts.candidates:
        if parts.series[run] == number:
            continue
        there = merged(parts.runs, np.flatnonzero(parts.point == parts.point[run]), parts.fields)
        field = difference(here, there, parts.fields)
        if field is None and not alone and parts.asked[run] != parts.asked[members[0]]:
            return int(run), ""
        refused = refused or _apart(parts, members, int(run), (field, here, there))
    return -1, refused


def _apart(
    parts: _Parts,
    members: Codes,
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


def _matches(runs: pd.DataFrame, wanted: Mapping[str, Any]) -> Bools:
    keep = np.ones(len(runs), dtype=bool)
    for key, value in wanted.items():
        name = axis_name(key)
        column = f"axis.{name}" if f"axis.{name}" in runs else name
        if column not in runs:
            return keep & False
        keep &= np.array([_same(own, value) for own in runs[column]], dtype=bool)
    return keep


def _same(own: object, wanted: object) -> bool:
    return not pd.isna(own) and (own == wanted or str(own) == str(wanted))  # type: ignore[call-overload]
