"""Records -> the DataFrame that Python users and Parquet files get."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from hpc_train.model.record import Record

NUMBERS = {
    "line": "int64",
    "value": "float64",
    "steps": "int64",
    **dict.fromkeys(("step", "rank", "message_size"), "Int64"),
}


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
