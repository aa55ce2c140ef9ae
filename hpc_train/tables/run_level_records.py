"""Records, as objects or in columns -> the run-level records as objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from hpc_train.model.record import Record

if TYPE_CHECKING:
    import pandas as pd


# This number of objects takes 50 MB.
_MANY = 200_000
WHOLE_RUN = ("world_size", "global_batch_size", "condition", "seed")


def held(records: Iterator[Record]) -> tuple[Record, ...] | pd.DataFrame:
    """Return records as objects or, if they are many, in columns, which need less memory."""
    first = tuple(islice(records, _MANY))
    if len(first) < _MANY:
        return first
    from hpc_train.tables.record_columns import gathered

    return gathered(chain(first, records))


def run_level_records(
    records: tuple[Record, ...] | pd.DataFrame, metrics: Sequence[str] = WHOLE_RUN
) -> Sequence[Record]:
    """Return the records of these metrics and of networks, or all if they are objects."""
    if isinstance(records, tuple):
        return records
    from hpc_train.tables.record_frame import few_rows

    return few_rows(records, metrics)


def one_by_one(records: tuple[Record, ...] | pd.DataFrame) -> tuple[Record, ...]:
    """Return all records as objects, which is slow if they are in columns."""
    if isinstance(records, tuple):
        return records
    from hpc_train.tables.record_frame import as_records

    return as_records(records)


def metrics_of(records: tuple[Record, ...] | pd.DataFrame) -> dict[str, set[str]]:
    """Return the metrics of each run that has a measurement."""
    if not isinstance(records, tuple):
        from hpc_train.tables.record_frame import metrics_by_run

        return metrics_by_run(records)
    found: dict[str, set[str]] = {}
    for record in records:
        if record.metric != "condition":
            found.setdefault(record.run, set()).add(record.metric)
    return found


def parsers_of(records: tuple[Record, ...] | pd.DataFrame) -> Counter[str]:
    """Return the number of records of each parser."""
    if isinstance(records, tuple):
        return Counter(map(attrgetter("parser"), records))
    counts = records["parser"].value_counts()
    return Counter({str(name): int(n) for name, n in counts.items() if n})


def unknown_scopes(records: tuple[Record, ...] | pd.DataFrame) -> Counter[tuple[str, str]]:
    """Return the number of records with an unknown scope of each run and parser."""
    if isinstance(records, tuple):
        return Counter((one.run, one.parser) for one in records if one.scope == "unknown")
    unknown = records[records["scope"] == "unknown"]
    return Counter(zip(unknown["run"].astype(str), unknown["parser"].astype(str), strict=True))


def joined(
    parts: Sequence[tuple[Record, ...] | pd.DataFrame],
) -> tuple[Record, ...] | pd.DataFrame:
    """Return all records, in order: in columns where some of them are."""
    at_hand = [part for part in parts if isinstance(part, tuple)]
    if len(at_hand) == len(parts):
        return tuple(chain.from_iterable(at_hand))
    from hpc_train.tables.record_frame import joined_frame

    return joined_frame(parts)
