"""Packs of records -> the DataFrame that Python users and Parquet files have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from hpc_train.model.record import Pack, Record

NUMBERS = {
    "line": "int64",
    "value": "float64",
    "steps": "int64",
    **dict.fromkeys(("step", "rank", "message_size"), "Int64"),
}
_OWN = ("line", "value", "step", "rank")


def records_frame(packs: Iterable[Pack]) -> pd.DataFrame:
    """Return one row per record, one column per field of `Record`, in that order.

    `step`, `rank` and `message_size` [B] are nullable integers, `value` is a float in `unit`; names
    are text, `node` None where the log names none.
    """
    fields = Record.__struct_fields__
    columns: dict[str, list[Any]] = {name: [] for name in fields}
    for pack in packs:
        for name, column in columns.items():
            if name in _OWN:
                column += getattr(pack, name)
            else:
                shared = [getattr(kind, name) for kind in pack.kinds]
                column += [shared[kind] for kind in pack.kind]
    frame: pd.DataFrame = pd.DataFrame(columns, columns=pd.Index(fields)).astype(NUMBERS)
    return frame
