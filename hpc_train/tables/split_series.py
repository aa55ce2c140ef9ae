"""Run table -> run table whose series contain only comparable runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.study import Scaling, narrowed
from hpc_train.tables.condition_differences import compared, levels, texts
from hpc_train.tables.group_reductions import (
    SAME,
    Floats,
    codes,
    filled,
    levels_of,
    numbers,
    packed,
)
from hpc_train.tables.points import KEY
from hpc_train.tables.record_arrays import Ints, Mask
from hpc_train.tables.runs import OK
from hpc_train.tables.scaling_regime import batches

_SHOWN = 4
_WIDTHS = (24, 48, 200)


class Separated(NamedTuple):
    """The runs with their comparable series, and a sentence for each reason to split."""

    runs: pd.DataFrame
    notes: tuple[str, ...]


def separated(runs: pd.DataFrame, study: ExpectedStudy) -> Separated:
    """Split each series by the fields that must match, unless they are allowed to differ.

    First by the recorded conditions, then by the global batch where runs of one point have several.
    A run that did not record a field goes with the other runs of its point, else of its series.
    Where a series was split, the table gets columns `series_asked` (its name before) and
    `series_comparable` (before it was split by batch).

    Raises:
        ReportError: `study.allow_mixed` names a field that does not exist.
    """
    fields = compared(runs, study.allow_mixed)
    series, point = codes([runs["series"]]), codes([runs[name] for name in KEY])
    names, parts = runs["series"].astype(str).to_numpy(dtype=object), series
    notes, silent = [], []
    for field in fields:
        values = texts(runs, field)
        level = levels(field, values)
        absent = int(((level < 0) & (runs["state"] == OK).to_numpy(dtype=bool)).sum())
        silent += [f"{field} ({_runs(absent)})"] if absent else []
        inside = _differs(level, series)[series]
        if not inside.any():
            continue
        notes.append(_difference(field, _census(runs, values, level, inside)))
        level = np.where(inside, filled(level, point, series), -1)
        finer = codes([pd.Series(parts), pd.Series(level)])
        refined = (_parts(finer, series) > _parts(parts, series))[series]
        names, parts = _named(names, field, _short(values, level), level, refined), finer
    comparable = runs.assign(series=names)
    batch, reasons = batch_split(comparable, study.scaling)
    notes += [*reasons, *_allowed(runs, study.allow_mixed, series)]
    if silent:
        notes.append(f"not recorded by every run, assumed to match: {', '.join(silent)}")
    if (batch == runs["series"].to_numpy(dtype=object)).all():
        return Separated(runs, tuple(notes))
    split = runs.assign(series=batch, series_asked=runs["series"], series_comparable=names)
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
    """Return how many parts each series has."""
    _, first = np.unique(parts, return_index=True)
    return np.bincount(series[first], minlength=int(series.max(initial=-1)) + 1)


def _named(
    names: np.ndarray[tuple[int], np.dtype[np.object_]],
    field: str,
    shown: Sequence[str],
    level: Ints,
    where: Mask,
) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    changed: np.ndarray[tuple[int], np.dtype[np.object_]] = names.copy()
    runs = np.flatnonzero(where & (level >= 0))
    part = packed(pd.factorize(names[runs])[0], level[runs])
    code, first = pd.factorize(part)[0], np.flatnonzero(~pd.Series(part).duplicated().to_numpy())
    new = [narrowed(names[run], field, shown[level[run]]) for run in runs[first].tolist()]
    changed[runs] = np.array(new, dtype=object)[code]
    return changed


def _short(values: Sequence[str | None], level: Ints) -> list[str]:
    """Return the text of each level, shortened as far as the texts remain distinct."""
    known = level >= 0
    places = np.flatnonzero(known)
    numbers, at = np.unique(level[known], return_index=True)
    found = zip(numbers.tolist(), places[at].tolist(), strict=True)
    first = {number: values[place] or "" for number, place in found}
    every = [first.get(number, "") for number in range(int(level.max(initial=-1)) + 1)]
    for width in _WIDTHS:
        cut = [text[:width] for text in every]
        if len(set(cut)) == len(set(every)):
            return cut
    return every


def _census(
    runs: pd.DataFrame, values: Sequence[str | None], level: Ints, inside: Mask
) -> list[tuple[str, int, str]]:
    """Return text, number of runs and a run of each level within the series that differ."""
    known = inside & (level >= 0)
    found, first, counts = np.unique(level[known], return_index=True, return_counts=True)
    names = runs["run_id"].to_numpy(dtype=object)[known][first]
    shown = _short(values, np.where(known, level, -1))
    seen = sorted(zip(first, found, counts, names, strict=True), key=lambda row: int(row[0]))
    return [(shown[number], int(count), str(name)) for _, number, count, name in seen]


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
            census = _census(runs, values, level, inside)
            shown = ", ".join(f"{text} ({_runs(n)})" for text, n, _ in census)
            yield f"allowed to differ: {field}: {shown}"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"


def batch_split(runs: pd.DataFrame, declared: Scaling | None) -> tuple[Any, list[str]]:
    """Return the name of each run's series, split where a point has several batches, and why.

    A series is split by global batch or by batch per rank, whichever leaves fewer parts of one
    size; a declared regime decides. Runs of different batches are never averaged.
    """
    names = runs["series"].to_numpy(dtype=object).copy()
    ok = (runs["state"] == OK).to_numpy(dtype=bool)
    batch = np.where(ok, numbers(runs, "global_batch"), np.nan)
    point = codes([runs[name] for name in KEY])
    notes = []
    for label in dict.fromkeys(names[_several(batch, point)]):
        own = np.flatnonzero(names == label)
        field, values, level = _split(batch[own], numbers(runs, "ranks")[own], point[own], declared)
        level = filled(level, point[own], np.zeros(len(own), dtype=np.int64))
        texts = {number: f"{values[level == number][0]:g}" for number in set(level.tolist())}
        names[own] = [narrowed(str(label), field, texts[number]) for number in level.tolist()]
        notes.append(
            f"runs of one size have different global batches ({batches(runs.iloc[own])}): separate "
            f"series by {field}, because they are not averaged"
        )
    return names, notes


def _several(batch: Floats, point: Ints) -> Mask:
    """Whether each run is of a point that has several batches."""
    low = pd.Series(batch).groupby(point).transform("min").to_numpy(dtype=np.float64)
    high = pd.Series(batch).groupby(point).transform("max").to_numpy(dtype=np.float64)
    several: Mask = high - low > SAME * high
    return several


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
