"""Run table -> run table whose series contain only comparable runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from hpc_train.jobs.study import Scaling, narrowed
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.condition_differences import compared, levels, texts
from hpc_train.scaling.group_reductions import SAME, Floats, filled, least, levels_of, most, numbers
from hpc_train.scaling.points import KEY
from hpc_train.scaling.record_arrays import Ints, Mask, codes, firsts, packed
from hpc_train.scaling.runs import OK
from hpc_train.scaling.scaling_regime import batch_column, batches

_SHOWN = 4
_NUMBER = re.compile(r"\d{1,15}(?:\.\d+)?(?:e\+?\d{1,2})?", re.IGNORECASE)
_WIDTHS = (24, 48, 200)


class Separated(NamedTuple):
    """The runs with their comparable series, and a sentence for each reason to split."""

    runs: pd.DataFrame
    notes: tuple[str, ...]


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
        values = texts(runs, field)
        level = levels(field, values)
        absent = int(((level < 0) & (runs["state"] == OK).to_numpy(dtype=bool)).sum())
        silent += [f"{field} ({_runs(absent)})"] if absent else []
        inside = _differs(level, series)[series]
        if not inside.any():
            continue
        notes.append(_difference(field, _census(runs, values, field, level, inside)))
        level = np.where(inside, filled(level, point, series), -1)
        finer = codes([pd.Series(parts), pd.Series(level)])
        refined = (_parts(finer, series) > _parts(parts, series))[series]
        shown = _short(values, field, level)
        names, parts = _named(names, field, shown, np.where(refined, level, -1)), finer
    batch, reasons = batch_split(runs.assign(series=names), study.scaling)
    notes += [*reasons, *_allowed(runs, study.allow_mixed, series)]
    if silent:
        notes.append(f"not recorded by every run, assumed to match: {', '.join(silent)}")
    if batch == asked:
        return Separated(runs, tuple(notes))
    split = runs.assign(series=batch, series_asked=runs["series"])
    return Separated(split, tuple(notes))


def _differs(level: Ints, series: Ints) -> Mask:
    """Whether each series has several known levels."""
    size = int(series.max(initial=-1)) + 1
    known = level >= 0
    own = series[known]
    first = ~pd.Series(packed(own, level[known])).duplicated().to_numpy()
    several: Mask = np.bincount(own[first], minlength=size) > 1
    return several


def _parts(parts: Ints, series: Ints) -> Ints:
    """Return how many parts each series has; parts are numbered in order of appearance."""
    return np.bincount(series[firsts(parts)], minlength=int(series.max(initial=-1)) + 1)


def _named(names: Sequence[str], field: str, shown: Sequence[str], level: Ints) -> list[str]:
    """Return the names of the series of runs, narrowed to the level of those that have one."""
    return [
        name if one < 0 else narrowed(name, field, shown[one])
        for name, one in zip(names, level.tolist(), strict=True)
    ]


def _short(values: Sequence[str | None], field: str, level: Ints) -> list[str]:
    """Return the text of each level of runs, shortened as far as the texts remain distinct."""
    there = np.bincount(level[level >= 0]) > 0
    every = [""] * len(there)
    known = dict.fromkeys(zip(levels(field, values).tolist(), values, strict=True))
    for number, text in reversed([*known]):
        if 0 <= number < len(there) and there[number]:
            every[number] = _with_unit(text or "") if field == "parameters" else text or ""
    for width in _WIDTHS:
        cut = [text[:width] for text in every]
        if len(set(cut)) == len(set(every)):
            return cut
    return every


def _with_unit(text: str) -> str:
    """Return a number of parameters as `7 B` or `124 M`."""
    for factor, unit in ((1e9, "B"), (1e6, "M")):
        if _NUMBER.fullmatch(text) and float(text) >= factor:
            return f"{float(text) / factor:.3g} {unit}"
    return text


def _census(
    runs: pd.DataFrame, values: Sequence[str | None], field: str, level: Ints, inside: Mask
) -> list[tuple[str, int, str]]:
    """Return text, number of runs and a run of each level within the series that differ."""
    places = np.flatnonzero(inside & (level >= 0))
    level = level[places]
    counts, shown = np.bincount(level).tolist(), _short(values, field, level)
    first = np.flatnonzero(~pd.Series(level).duplicated().to_numpy())
    names = runs["run_id"].iloc[places[first]].tolist()
    return [
        (shown[number], counts[number], str(name))
        for number, name in zip(level[first].tolist(), names, strict=True)
    ]


def _difference(field: str, census: Sequence[tuple[str, int, str]]) -> str:
    shown = [f"{text} ({_runs(n)}, {name})" for text, n, name in census[:_SHOWN]]
    more = [f"{len(census) - _SHOWN} more"] if len(census) > _SHOWN else []
    return (
        f"{field} differs: {', '.join([*shown, *more])}: separate series; "
        f"--allow-mixed {field} combines them"
    )


def _allowed(runs: pd.DataFrame, allowed: Sequence[str], series: Ints) -> Iterator[str]:
    if "conditions" not in runs:
        return
    for field in dict.fromkeys(allowed):
        values = texts(runs, field)
        level = levels(field, values)
        inside = _differs(level, series)[series]
        if inside.any():
            census = _census(runs, values, field, level, inside)
            shown = ", ".join(f"{text} ({_runs(n)})" for text, n, _ in census)
            yield f"allowed to differ: {field}: {shown}"


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
    for label in dict.fromkeys(before[_several(batch, point)].tolist()):
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


def _several(batch: Floats, point: Ints) -> Mask:
    """Whether each run is of a point that has several batches."""
    size = int(point.max(initial=-1)) + 1
    low, high = least(batch, point, size), most(batch, point, size)
    several: Mask = high - low > SAME * high
    return several[point]


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
    return min(ways, key=lambda way: _alone(way[2], ranks))


def _alone(level: Ints, ranks: Floats) -> int:
    """Return the number of levels that were measured at one size only."""
    known = level >= 0
    pairs = np.unique(np.stack([level[known], ranks[known].astype(np.int64)]), axis=1)
    return int((np.bincount(pairs[0]) == 1).sum())
