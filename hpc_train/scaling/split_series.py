"""Run table -> run table whose series contain only comparable runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError, nearest
from hpc_train.jobs.study import Scaling, narrowed
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.group_reductions import (
    NAN,
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

# The most informative first: a series is named after the first field that differs.
FIELDS = (
    "parser", "counted", "model", "parameters", "data", "sequence_length", "precision", "layout",
    "tensor_parallel", "pipeline_parallel", "torch", "cuda", "nccl", "nccl2", "nccl_plugin",
    "partition", "gpu", "container", "commit", "dirty", "command", "template", "modules",
)  # fmt: skip
# Padding of the vocabulary grows with tensor parallelism.
_NEAR = {"parameters": 0.05}
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
