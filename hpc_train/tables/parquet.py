"""Records -> Parquet."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pandas as pd

from hpc_train.errors import MissingExtraError
from hpc_train.model.record import Record


def parquet_bytes(records: Sequence[Record]) -> bytes:
    """Return records as one Parquet file.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    fields = Record.__struct_fields__
    columns = {name: [getattr(record, name) for record in records] for name in fields}
    buffer = io.BytesIO()
    try:
        pd.DataFrame(columns).to_parquet(buffer, index=False)
    except ImportError:
        raise MissingExtraError(
            "Parquet needs pyarrow, which is not installed", "pip install pyarrow, or -o FILE.csv"
        ) from None
    return buffer.getvalue()
