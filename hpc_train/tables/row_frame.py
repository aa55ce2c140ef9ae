"""Rows of a report -> a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd


def row_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per mapping; a column holds every key, in the order of its first use.

    Whole numbers remain whole numbers if some rows have none.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    frame: pd.DataFrame = pd.DataFrame(columns, columns=pd.Index(names))
    return frame


def _column(values: Sequence[Any]) -> pd.Series:
    kinds = {type(value) for value in values if value is not None}
    # A column without any value is one of numbers, so that it can be plotted and compared.
    dtype = {frozenset({int}): "Int64", frozenset(): "float64"}.get(frozenset(kinds))
    column: pd.Series = pd.Series(list(values), dtype=dtype)
    return column
