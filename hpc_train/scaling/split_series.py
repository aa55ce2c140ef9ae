"""Run table -> run table whose series contain only comparable runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.jobs.study import Scaling, narrowed
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.condition_differences import compared, levels, texts
from hpc_train.scaling.group_reductions import (
    SAME,
    Floats,
    Ints,
    Mask,
    codes,
    filled,
    levels_of,
    numbers,
)
from hpc_train.scaling.points import KEY
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
        inside = _differs(level, series)
        if not inside.any():
            continue
        notes.append(_difference(field, _census(runs, values, field, level, inside)))
        level = np.where(inside, filled(level, point, series), -1)
        finer = codes([pd.Series(parts), pd.Series(level)])
        finer_parts, before = (_counted(pd.Series(own), series) for own in (finer, parts))
        refined = (finer_parts > before).to_numpy(dtype=bool)
        shown = _short(values, field, level)
        named = np.where(refined, level, -1).tolist()
        names = [
            name if one < 0 else narrowed(name, field, shown[one])
            for name, one in zip(names, named, strict=True)
        ]
        parts = finer
    batch, reasons = batch_split(runs.assign(series=names), study.scaling)
    notes += [*reasons, *_allowed(runs, study.allow_mixed, series)]
    if silent:
        notes.append(f"not recorded by every run, assumed to match: {', '.join(silent)}")
    if batch == asked:
        return Separated(runs, tuple(notes))
    split = runs.assign(series=batch, series_asked=runs["series"])
    return Separated(split, tuple(notes))


def _differs(level: Ints, series: Ints) -> Mask:
    """Whether the series of each run has several known levels."""
    several: Mask = (_counted(pd.Series(level).where(level >= 0), series) > 1).to_numpy(dtype=bool)
    return several


def _counted(values: pd.Series[Any], series: Ints) -> pd.Series[Any]:
    """Return for each run how many different values its series has."""
    return values.groupby(series).transform("nunique")


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
        inside = _differs(level, series)
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
