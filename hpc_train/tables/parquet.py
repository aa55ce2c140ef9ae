"""Records -> Parquet."""

from __future__ import annotations

import io
from collections.abc import Sequence

from hpc_train.errors import MissingExtraError
from hpc_train.model.record import Record
from hpc_train.tables.frame import records_frame


def parquet_bytes(records: Sequence[Record]) -> bytes:
    """Return records as one Parquet file.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    buffer = io.BytesIO()
    try:
        records_frame(records).to_parquet(buffer, index=False)
    except ImportError:
        raise MissingExtraError(
            "Parquet needs pyarrow, which is not installed", "pip install pyarrow, or -o FILE.csv"
        ) from None
    return buffer.getvalue()
