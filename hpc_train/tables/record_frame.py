"""Records <-> the DataFrame that Python users, Parquet files and tables of many records have."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hpc_train.model.record import UNITS, Record
from hpc_train.tables.record_arrays import NONE, TEXTS

NUMBERS = {
    "line": "int64",
    "value": "float64",
    "steps": "int64",
    **dict.fromkeys(("step", "rank", "message_size"), "Int64"),
}
_NULLABLE = ("step", "rank", "message_size")
_ABSENT = -1
_SAID_ONCE = ["run", "parser", "metric", "value", "variant", "message_size"]


def records_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per record, one column per field of `Record`, in that order.

    `step`, `rank` and `message_size` [B] are nullable integers, `value` is a float in `unit`; names
    are text, `node` None where the log names none.
    """
    fields = Record.__struct_fields__
    rows = list(records)
    columns = {name: [getattr(record, name) for record in rows] for name in fields}
    frame: pd.DataFrame = pd.DataFrame(columns, columns=pd.Index(fields)).astype(NUMBERS)
    return frame


class _Gathered:
    """Growing columns; texts are numbers into the names seen so far."""

    def __init__(self) -> None:
        self.names: dict[str, dict[str | None, int]] = {name: {None: _ABSENT} for name in TEXTS}
        self.codes = {name: array("i") for name in TEXTS}
        self.whole = {name: array("q") for name in ("line", "steps", *_NULLABLE)}
        self.value = array("d")

    def add(self, records: Iterable[Record]) -> None:
        texts = [(name, self.names[name], self.codes[name].append) for name in TEXTS]
        line, steps, step, rank, size = (column.append for column in self.whole.values())
        value = self.value.append
        for record in records:
            for name, known, append in texts:
                text = getattr(record, name)
                code = known.get(text)
                # Of the absent text, the number is -1.
                append(known.setdefault(text, len(known) - 1) if code is None else code)
            line(record.line)
            steps(record.steps)
            step(NONE if record.step is None else record.step)
            rank(NONE if record.rank is None else record.rank)
            size(NONE if record.message_size is None else record.message_size)
            value(record.value)


def gathered(records: Iterable[Record]) -> pd.DataFrame:
    """Return what tables need of the records, as `read_records` does of a Parquet file."""
    found = _Gathered()
    found.add(records)
    columns: dict[str, Any] = {}
    # Each column goes as its copy comes, for there may be millions of rows.
    for name, known in found.names.items():
        codes = np.frombuffer(found.codes.pop(name), dtype=np.int32)
        names = pd.Index(list(known)[1:], dtype=object)
        columns[name] = pd.Categorical.from_codes(codes, categories=names)
        del codes
    for name in list(found.whole):
        numbers = np.frombuffer(found.whole.pop(name), dtype=np.int64)
        nullable = name in _NULLABLE
        columns[name] = pd.arrays.IntegerArray(numbers, numbers == NONE) if nullable else numbers
    columns["value"] = np.frombuffer(found.value, dtype=np.float64)
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame


def few_rows(frame: pd.DataFrame, metrics: Sequence[str]) -> tuple[Record, ...]:
    """Return the rows of these metrics and of networks, what is said again only once."""
    chosen = frame[frame["metric"].isin(metrics) | (frame["parser"] == "perftest")]
    return as_records(chosen.drop_duplicates(_SAID_ONCE))


def as_records(frame: pd.DataFrame) -> tuple[Record, ...]:
    """Return rows as records."""
    names = [name for name in Record.__struct_fields__ if name != "unit"]
    units = frame["metric"].astype(object).map(UNITS).fillna("1")
    objects = frame[names].astype(object)
    plain = objects.where(objects.notna(), None)
    return tuple(
        Record(unit=unit, **dict(zip(names, row, strict=True)))
        for unit, row in zip(units, plain.itertuples(index=False, name=None), strict=True)
    )


def metrics_by_run(frame: pd.DataFrame) -> dict[str, set[str]]:
    """Return the runs in the order in which they first appear, each with its metrics."""
    found: dict[str, set[str]] = {}
    pairs = frame[["run", "metric"]].drop_duplicates()
    pairs = pairs[pairs["metric"] != "condition"]
    for run, metric in pairs.itertuples(index=False, name=None):
        found.setdefault(str(run), set()).add(str(metric))
    return found


def joined_frame(parts: Iterable[Sequence[Record] | pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all parts, records or frames of them, in order."""
    frames = [part if isinstance(part, pd.DataFrame) else records_frame(part) for part in parts]
    joined: pd.DataFrame = pd.concat(
        [frame for frame in frames if not frame.empty], ignore_index=True
    )
    return joined
