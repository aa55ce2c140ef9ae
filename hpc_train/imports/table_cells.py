"""A table -> its columns: numbers, and texts by their codes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.number_cells import ABSENT, number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_VERSION = tuple(map(int, pd.__version__.split(".")[:2]))
# Since pandas 3.1 every number is exact, and the argument is deprecated.
_EXACT: dict[str, Any] = {} if _VERSION >= (3, 1) else {"float_precision": "round_trip"}


class Texts(NamedTuple):
    """The cells of a column as indexes of `names`, numbered in order of appearance; -1 if empty."""

    codes: Ints
    names: list[str]

    def cell(self, row: int) -> str | None:
        """Return the text in a row, None if the cell is empty."""
        return None if self.codes[row] < 0 else self.names[self.codes[row]]

    def take(self, rows: Ints) -> Texts:
        """Return the cells of some rows."""
        return Texts(self.codes[rows], self.names)


class Cells(NamedTuple):
    """Columns by their place in the table: numbers, NaN if empty and infinite if none; texts."""

    numbers: dict[int, Floats]
    texts: dict[int, Texts]


def read_cells(table: ResultTable, numbers: Iterable[int], texts: Iterable[int]) -> Cells:
    """Read columns of a table, with all their cells at once.

    A cell that is no number is infinite: it is for the caller to name it.
    """
    wanted, words = sorted(numbers), sorted(texts)
    try:
        kinds = dict.fromkeys(wanted, "float64") | dict.fromkeys(words, "object")
        frame = _frame(table, kinds)
    except ValueError:
        # A cell is no number, or has blanks around it.
        frame = _frame(table, dict.fromkeys([*wanted, *words], "object"))
    return Cells(
        {place: _numbers(table, place, frame[place]) for place in wanted},
        {place: _texts(frame[place]) for place in words},
    )


def _frame(table: ResultTable, kinds: Mapping[int, str]) -> pd.DataFrame:
    empty = sorted(ABSENT)
    numbers: Any = [place for place, kind in kinds.items() if kind == "float64"]
    options: dict[str, Any] = {**_EXACT, "names": list(range(len(table.names)))}
    frame: pd.DataFrame = pd.read_csv(
        io.BytesIO(table.body),
        sep=table.separator,
        header=None,
        index_col=False,
        usecols=sorted(kinds),
        dtype=kinds,
        keep_default_na=False,
        na_values=dict.fromkeys(numbers, empty),
        skip_blank_lines=False,
        low_memory=False,
        encoding="utf-8",
        **options,
    )
    return frame


def _numbers(table: ResultTable, place: int, column: pd.Series[Any]) -> Floats:
    if column.dtype == np.float64:
        found = column.to_numpy(dtype=np.float64)
        # Some versions of pandas read the word as a number.
        if not np.isnan(found).any() or b"nan" not in table.body.lower():
            return found
        column = _frame(table, {place: "object"})[place]
    texts = _texts(column)
    values = np.array([*map(_number, texts.names), np.nan], dtype=np.float64)
    return values[texts.codes]


def _number(text: str) -> float:
    try:
        return number(text, "1")
    except ValueError:
        return np.inf


def _texts(column: pd.Series[Any]) -> Texts:
    codes, found = pd.factorize(column.to_numpy(dtype=object))
    stripped = [str(text).strip() for text in found]
    names = list(dict.fromkeys(text for text in stripped if text not in ABSENT))
    order = {name: place for place, name in enumerate(names)}
    places = np.array([*(order.get(text, -1) for text in stripped), -1], dtype=np.int64)
    return Texts(places[codes], names)
