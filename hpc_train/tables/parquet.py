"""Records -> Parquet, and back."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from hpc_train.errors import LogParseError, MissingExtraError
from hpc_train.model.record import Record
from hpc_train.tables.frame import NUMBERS, records_frame


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


def read_records(path: Path) -> pd.DataFrame:
    """Read the records of a Parquet file, column by column.

    Raises:
        LogParseError: it is damaged, or a newer hpctrain wrote it.
        MissingExtraError: pyarrow is not installed.
    """
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise MissingExtraError(
            "Parquet needs pyarrow, which is not installed", "pip install pyarrow"
        ) from None
    except (OSError, ValueError) as failure:
        raise LogParseError(f"{path}: no Parquet file: {str(failure).splitlines()[0]}") from None
    unknown = [name for name in frame.columns if name not in Record.__struct_fields__]
    if unknown:
        said = f"{path}: written by a newer hpctrain (with {unknown[0]!r}, this one reads schema 1)"
        raise LogParseError(said)
    missing = [name for name in Record.__struct_fields__ if name not in frame]
    if missing:
        raise LogParseError(f"{path}: the column {missing[0]!r} is missing; these are no records")
    typed: pd.DataFrame = frame.astype(NUMBERS)
    return typed
