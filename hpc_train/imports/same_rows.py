"""Tables -> an error if two of their rows hold one job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.measure_columns import RESULT_COLUMNS
from hpc_train.imports.table_cells import Floats, Ints, Texts
from hpc_train.model.result_columns import BATCH

Marks = NDArray[np.uint64]
# Two jobs with 2 % noise agree in six digits once in 10,000 pairs, and in two digits often.
_DIGITS = 6
# Digits in which the values of one job agree, whatever their unit.
_SAME = 12
# Values that agree in them differ by less.
_NEAR = 1e-10
# Settings, which repetitions share.
_GIVEN = frozenset({BATCH, "learning_rate", "samples", "steps"})
_SPREAD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class RowContents(NamedTuple):
    """The rows of one table as they count: values in hpctrain's units, sizes, texts, names.

    `sizes` are those of each kind of rows, `kind` that of each row. `written` are the numbers in
    the cells. `more` reads the texts of the other columns, which only distinguish jobs.
    """

    table: ResultTable
    values: Mapping[str, Floats]
    written: Mapping[str, Floats]
    sizes: Sequence[Mapping[str, int]]
    kind: Ints
    texts: Mapping[str, Texts]
    names: Texts | None
    more: Callable[[], Mapping[str, Texts]]

    def take(self, rows: Ints) -> RowContents:
        """Return some of the rows."""
        return self._replace(
            values={name: own[rows] for name, own in self.values.items()},
            written={name: own[rows] for name, own in self.written.items()},
            kind=self.kind[rows],
            texts={name: own.take(rows) for name, own in self.texts.items()},
            names=None if self.names is None else self.names.take(rows),
            more=lambda: {name: own.take(rows) for name, own in self.more().items()},
        )


def refuse_same_rows(tables: Sequence[RowContents]) -> None:
    """Refuse rows that hold the same values, in one table or in several, however they are written.

    Rows with different names are the same job if their results agree in six digits or more. Rows
    without a result do not count.

    Raises:
        LogParseError: two rows are the same; the message names both places.
    """
    place = _near_another(tables)
    first = np.cumsum([0, *(len(one.kind) for one in tables)])
    parts = np.split(place, np.searchsorted(place, first[1:-1]))
    some = [one.take(own - n) for one, own, n in zip(tables, parts, first, strict=False)]
    digits = np.concatenate([_digits(one.written, len(one.kind)) for one in some])
    mark = np.concatenate([_marks(one) for one in some])
    rows = np.flatnonzero(digits > 0)
    rows = rows[_repeated(mark[rows])]
    if not len(rows):
        return
    with np.errstate(over="ignore"):
        mark = mark + np.concatenate([_text_marks(one.more(), len(one.kind)) for one in some])
        named = mark + np.concatenate([_name_marks(one) for one in some])
    precise = rows[digits[rows] >= _DIGITS]
    pairs = [*_second(named, rows), *_second(mark, precise)]
    if pairs:
        raise _same(tables, *place[[*min(pairs)]].tolist())


def _near_another(tables: Sequence[RowContents]) -> Ints:
    """Return the rows of which a result is near that of another row, or absent.

    The results of two jobs seldom agree in so many digits: of few rows all cells are compared.
    """
    name = next(name for name in tables[0].values if name in RESULT_COLUMNS)
    absent = (np.full(len(one.kind), np.nan) for one in tables)
    columns = [one.values.get(name, none) for one, none in zip(tables, absent, strict=True)]
    value = np.concatenate(columns)
    known = np.isfinite(value)
    ordered = np.sort(value[known])
    near = np.diff(ordered) <= _NEAR * ordered[1:]
    close = np.concatenate([ordered[:-1][near], ordered[1:][near]])
    return np.flatnonzero(~known | pd.Series(value).isin(close).to_numpy())


def _second(mark: Marks, rows: Ints) -> list[tuple[int, int]]:
    """Return the first row that has the mark of an earlier one, and that row."""
    again = rows[pd.Series(mark[rows]).duplicated().to_numpy()]
    if not len(again):
        return []
    first = rows[mark[rows] == mark[again[0]]][0]
    return [(int(again[0]), int(first))]


def _repeated(mark: Marks) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pd.Series(mark).duplicated(keep=False).to_numpy()
    return found


def _same(tables: Sequence[RowContents], row: int, other: int) -> LogParseError:
    place, first = _where(tables, row), _where(tables, other)
    return LogParseError(
        f"{place}: the same row as {first}: one job, not two repetitions",
        "remove it or, if they are two jobs, distinguish them by a column `repetition`",
    )


def _where(tables: Sequence[RowContents], row: int) -> str:
    for one in tables:
        if row < len(one.kind):
            return one.table.where(row)
        row -= len(one.kind)
    raise IndexError(row)


def _digits(written: Mapping[str, Floats], rows: int) -> Ints:
    """Return the significant digits of the most precise result of each row, at most 12."""
    most = np.zeros(rows, dtype=np.int64)
    for name, numbers in written.items():
        if name not in _GIVEN:
            whole, _ = _significant(numbers)
            known = whole != 0
            own = np.where(known, 1, 0)
            for digits in range(2, _DIGITS + 1):
                own += known & (whole % 10 ** (_SAME - digits + 1) != 0)
            most = np.maximum(most, own)
    return most


def _significant(values: Floats) -> tuple[Ints, Ints]:
    """Return numbers of twelve digits, and their exponents; 0 for absent values."""
    absent = np.isnan(values) | (values == 0)
    sound = np.where(absent, 1.0, values)
    exponent = np.floor(np.log10(np.abs(sound))).astype(np.int64)
    # In two factors: of the smallest numbers, one is too large for a float.
    half = (_SAME - 1 - exponent) // 2
    scaled = sound * 10.0**half * 10.0 ** (_SAME - 1 - exponent - half)
    whole = np.rint(scaled).astype(np.int64)
    over = np.abs(whole) >= 10**_SAME
    whole = np.where(over, whole // 10, whole)
    under = np.abs(whole) < 10 ** (_SAME - 1)
    whole = np.where(under, whole * 10, whole)
    return np.where(absent, 0, whole), np.where(absent, 0, exponent + over - under)


def _marks(one: RowContents) -> Marks:
    """Return a number for the values, sizes and texts of each row."""
    with np.errstate(over="ignore"):
        mark = _text_marks(one.texts, len(one.kind))
        mark = mark + _size_marks(one.sizes)[one.kind]
        for name, values in one.values.items():
            whole, exponent = _significant(values)
            key = _spread(whole.view(np.uint64) + _spread(exponent.view(np.uint64)))
            own = _spread(key + _marked(name, [""])[0])
            # A value of 0 is written, an absent one is not.
            mark = mark + np.where(np.isnan(values), np.uint64(0), own)
    return mark


def _size_marks(sizes: Sequence[Mapping[str, int]]) -> Marks:
    mark = np.zeros(len(sizes), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name in dict.fromkeys(name for own in sizes for name in own):
            known = np.array([own.get(name, -1) for own in sizes], dtype=np.int64)
            own = _spread(_spread(known.view(np.uint64)) + _marked(name, [""])[0])
            mark = mark + np.where(known < 0, np.uint64(0), own)
    return mark


def _text_marks(texts: Mapping[str, Texts], rows: int) -> Marks:
    mark = np.zeros(rows, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for name, column in texts.items():
            mark = mark + np.append(_marked(name, column.names), np.uint64(0))[column.codes]
    return mark


def _name_marks(one: RowContents) -> Marks:
    return _text_marks({} if one.names is None else {"run": one.names}, len(one.kind))


def _marked(name: str, texts: Sequence[str]) -> Marks:
    """Return a number for each text of a column, the same in every table."""
    column = pd.util.hash_array(np.array([name], dtype=object))
    own: Any = pd.util.hash_array(np.array([*texts], dtype=object))
    with np.errstate(over="ignore"):
        found: Marks = _spread(_spread(column) + own)
    return found


def _spread(mark: Marks) -> Marks:
    with np.errstate(over="ignore"):
        for shift, factor in zip((30, 27), _SPREAD, strict=True):
            mark = (mark ^ (mark >> np.uint64(shift))) * factor
        found: Marks = mark ^ (mark >> np.uint64(31))
    return found
