"""Records in a DataFrame -> the run-level records, and the metrics of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from hpc_train.model.record import UNITS, Record
from hpc_train.tables.frame import records_frame

_SAID_ONCE = ["run", "parser", "metric", "value", "variant", "message_size"]


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


def with_records(frame: pd.DataFrame, records: Iterable[Record]) -> pd.DataFrame:
    """Return the rows and, after them, some more."""
    more = records_frame(records)
    if more.empty:
        return frame
    joined: pd.DataFrame = pd.concat([frame, more], ignore_index=True)
    return joined
