"""Records, as they are read -> the columns that tables use, in a twentieth of the memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.model.record import Record
from hpc_train.tables.record_arrays import TEXTS

_NULLABLE = ("step", "rank", "message_size")
_WHOLE = ("line", "steps", *_NULLABLE)
_ABSENT = -1
_WIDTHS = (np.int8, np.int16, np.int32)
# Then the objects are packed: about a megabyte of objects.
_AT_ONCE = 1 << 14
_Numbers = NDArray[np.signedinteger[Any]]


class _Gathered:
    """Columns in chunks with the smallest sufficient type; texts are indexes of the names so "
    "far."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str | None, int]] = {name: {None: _ABSENT} for name in TEXTS}
        self.chunks: dict[str, list[NDArray[Any]]] = {
            name: [] for name in (*TEXTS, *_WHOLE, *map(_absent, _NULLABLE), "value")
        }

    def add(self, records: list[Record]) -> None:
        chunks = self.chunks
        for name, known in self.names.items():
            chunks[name].append(_narrow(array("q", _codes(records, name, known))))
        for name in _WHOLE:
            numbers = [getattr(record, name) for record in records]
            if name in _NULLABLE:
                chunks[_absent(name)].append(np.array([one is None for one in numbers], dtype=bool))
                numbers = [0 if one is None else one for one in numbers]
            chunks[name].append(_narrow(array("q", numbers)))
        chunks["value"].append(np.array([record.value for record in records], dtype=np.float64))

    def joined(self, name: str) -> NDArray[Any]:
        """Return a whole column, and release its chunks, because there may be millions of rows."""
        chunks = self.chunks.pop(name)
        return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def gathered(records: Iterable[Record]) -> pd.DataFrame:
    """Return the columns of the records that tables need, as `read_records` does for Parquet files.

    Whole numbers use the smallest sufficient integer type of the column.
    """
    found, source = _Gathered(), iter(records)
    while some := list(islice(source, _AT_ONCE)):
        found.add(some)
    columns: dict[str, Any] = {}
    for name, known in found.names.items():
        names = pd.Index(list(known)[1:], dtype=object)
        columns[name] = pd.Categorical.from_codes(found.joined(name), categories=names)
    for name in _WHOLE:
        numbers = found.joined(name)
        if name in _NULLABLE:
            absent = found.joined(_absent(name)).astype(bool)
            columns[name] = pd.arrays.IntegerArray(numbers, absent)
        else:
            columns[name] = numbers
    columns["value"] = found.joined("value").astype(np.float64, copy=False)
    frame: pd.DataFrame = pd.DataFrame(columns, copy=False)
    return frame


def _codes(records: list[Record], name: str, known: dict[str | None, int]) -> Iterator[int]:
    for record in records:
        text = getattr(record, name)
        code = known.get(text)
        # An absent text has the number -1.
        yield known.setdefault(text, len(known) - 1) if code is None else code


def _narrow(numbers: array[int]) -> _Numbers:
    """Return the numbers in the smallest sufficient type."""
    wide: _Numbers = np.frombuffer(numbers, dtype=np.int64)
    low, high = int(wide.min()), int(wide.max())
    for width in _WIDTHS:
        limits = np.iinfo(width)
        if limits.min <= low and high <= limits.max:
            return wide.astype(width)
    return wide


def _absent(name: str) -> str:
    return f"{name} is absent"
