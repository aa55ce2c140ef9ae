"""Run table -> selected runs (`launcher=srun`), or those of a stored report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from hpc_train.base.errors import ReportError, nearest
from hpc_train.base.metrics import RUN_METRICS
from hpc_train.jobs.study import ALONE, axis_name
from hpc_train.scaling.runs import COLUMNS

_FLOATS = tuple(metric.key for metric in RUN_METRICS if not metric.counts)
_SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "ranks")


def selected(runs: pd.DataFrame, wanted: Mapping[str, str], name: str) -> pd.DataFrame:
    """Return the runs with these values of axes, sizes or conditions.

    The selected axis is removed from the name of the series, so that two selections have the same
    names.

    Raises:
        ReportError: there is no such axis, or no run has the value.
    """
    own = runs
    for key, value in wanted.items():
        values = _values(own, axis_name(key))
        if values is None:
            axes = [str(name) for name in runs if str(name).startswith("axis.")]
            own_names = (*(name.removeprefix("axis.") for name in axes), *_SIZES)
            known = list(dict.fromkeys([*own_names, *_conditions(runs)]))
            raise ReportError(
                f"{name}: nothing is called {key!r}{nearest(key, known)}; known: {', '.join(known)}"
            )
        keep = values == value
        if not keep.any():
            there = sorted(set(values.dropna()))
            raise ReportError(
                f"{name}: no run with {key}={value}{nearest(value, there)}; "
                f"{key} is {', '.join(there) or 'not recorded'}"
            )
        own = own[keep]
    names = [axis_name(key) for key in wanted]
    series = [
        ", ".join(part for part in str(label).split(", ") if part.partition("=")[0] not in names)
        for label in own["series"]
    ]
    series = [label or ALONE for label in series]
    return own.assign(series=series)


def _values(runs: pd.DataFrame, key: str) -> pd.Series[str] | None:
    for column in (f"axis.{key}", key):
        if column in runs and (column != key or key in _SIZES):
            # As objects: pandas 2.2 maps counts with a missing one as floats.
            return runs[column].astype(object).map(str, na_action="ignore")
    if key in _conditions(runs):
        return runs["conditions"].map(lambda own: (own or {}).get(key))
    return None


def _conditions(runs: pd.DataFrame) -> list[str]:
    if "conditions" not in runs:
        return []
    return sorted({key for own in runs["conditions"] if isinstance(own, dict) for key in own})


def stored_runs(rows: Sequence[Mapping[str, Any]], name: str) -> pd.DataFrame:
    """Return the run table from `runs` of a report in JSON.

    Raises:
        ReportError: a run lacks a key that this version needs.
    """
    needed = ("run_id", "series", "state")
    for row in rows:
        absent = [key for key in needed if key not in row]
        if absent:
            raise ReportError(f"{name}: runs: {row.get('run_id', '?')} has no {absent[0]!r}")
    keys = dict.fromkeys([*COLUMNS, *(key for row in rows for key in row)])
    frame = pd.DataFrame(list(rows), columns=pd.Index(list(keys)))
    counts = dict.fromkeys((*_SIZES, "repetition"), "Int64")
    numbers = {key: pd.to_numeric(frame[key], errors="coerce").astype("float64") for key in _FLOATS}
    return frame.assign(**numbers).astype(counts)


def row_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per mapping; a column holds every key, in the order of its first use.

    Whole numbers remain whole numbers if some rows have none.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    return pd.DataFrame(columns, columns=pd.Index(names))


def _column(values: Sequence[Any]) -> pd.Series:
    kinds = {type(value) for value in values if value is not None}
    # A column without any value is one of numbers, so that it can be plotted and compared.
    dtype = {frozenset({int}): "Int64", frozenset(): "float64"}.get(frozenset(kinds))
    return pd.Series(list(values), dtype=dtype)
