"""Records, or a frame of them -> one array per field, with each text as a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.errors import ReportError
from hpc_train.model.record import Record

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
TEXTS = ("run", "source", "parser", "metric", "scope", "node", "variant")
WHOLE = ("line", "step", "rank", "steps")
# Value of a step or rank that the line does not name; no log has such a number.
NONE = int(np.iinfo(np.int64).min)


class TextCodes(NamedTuple):
    """Texts as indexes of `names`; -1 if there is none."""

    codes: NDArray[np.signedinteger[Any]]
    names: Sequence[str]

    def among(self, wanted: Iterable[str]) -> Ints:
        """Return the index of each text in `wanted`, -1 for other texts."""
        order = {name: place for place, name in enumerate(wanted)}
        places = [order.get(name, -1) for name in self.names]
        found: Ints = np.array([*places, -1], dtype=np.int64)[self.codes]
        return found

    def led_by(self, first: Sequence[str]) -> TextCodes:
        """Return the same texts, numbered so that these names come first, in their order."""
        names = list(dict.fromkeys([*first, *self.names]))
        return TextCodes(self.among(names), names)


class RecordArrays(NamedTuple):
    """The fields of `Record` that tables use, in the order of the records."""

    run: TextCodes
    source: TextCodes
    parser: TextCodes
    metric: TextCodes
    scope: TextCodes
    node: TextCodes
    variant: TextCodes
    line: Ints
    step: Ints
    rank: Ints
    steps: Ints
    value: NDArray[np.float64]

    def take(self, places: Ints) -> RecordArrays:
        """Return some of the records."""
        return RecordArrays._make(
            TextCodes(column.codes[places], column.names)
            if isinstance(column, TextCodes)
            else column[places]
            for column in self
        )


def columns(records: Sequence[Record] | pd.DataFrame) -> RecordArrays:
    """Return the fields of records; a frame has the columns of `records_frame`.

    Raises:
        ReportError: the frame lacks a column.
    """
    if isinstance(records, pd.DataFrame):
        return _of_frame(records)
    texts = [_text(list(map(attrgetter(name), records))) for name in TEXTS]
    whole = [_whole(list(map(attrgetter(name), records))) for name in WHOLE]
    value = np.array(list(map(attrgetter("value"), records)), dtype=np.float64)
    return RecordArrays._make([*texts, *whole, value])


def _of_frame(frame: pd.DataFrame) -> RecordArrays:
    lacking = [name for name in (*TEXTS, *WHOLE, "value") if name not in frame]
    if lacking:
        raise ReportError(f"these records have no column {lacking[0]}; they need {_needed()}")
    texts = [_text(frame[name]) for name in TEXTS]
    # A CSV file does not distinguish a missing value and an empty text.
    variants = texts[-1].led_by([""])
    texts[-1] = variants._replace(codes=np.maximum(variants.codes, 0))
    whole = [_numbers(frame[name]) for name in WHOLE]
    return RecordArrays._make([*texts, *whole, frame["value"].to_numpy(dtype=np.float64)])


def _needed() -> str:
    return ", ".join((*TEXTS, *WHOLE, "value"))


def _text(values: Sequence[Any] | pd.Series[Any]) -> TextCodes:
    if isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype):
        return TextCodes(values.cat.codes.to_numpy(), values.cat.categories.tolist())
    codes, names = pd.factorize(np.asarray(values, dtype=object))
    return TextCodes(codes, names.tolist())


def _whole(values: Sequence[int | None]) -> Ints:
    return np.array([NONE if value is None else value for value in values], dtype=np.int64)


def _numbers(values: pd.Series[Any]) -> Ints:
    if values.hasnans:
        # Small unsigned types cannot hold the number of an absent text.
        return values.astype("Int64").fillna(NONE).to_numpy(dtype=np.int64)
    return values.to_numpy(dtype=np.int64)
