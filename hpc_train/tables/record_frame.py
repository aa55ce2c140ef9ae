"""Records <-> the DataFrame that Python users, Parquet files and tables of many records have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from hpc_train.model.record import UNITS, Record

NUMBERS = {
    "line": "int64",
    "value": "float64",
    "steps": "int64",
    **dict.fromkeys(("step", "rank", "message_size"), "Int64"),
}
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


def few_rows(frame: pd.DataFrame, metrics: Sequence[str]) -> tuple[Record, ...]:
    """Return the rows of these metrics and of networks, without repetitions."""
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
    """Return the runs in order of appearance, each with its metrics."""
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
