"""Records -> Parquet, and back to a frame."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from hpc_train.errors import MissingExtraError, ReportError
from hpc_train.model.record import Record
from hpc_train.tables.columns import TEXTS, WHOLE
from hpc_train.tables.frame import NUMBERS, records_frame

SCHEMA = 1
_KEY = b"hpctrain_schema"
_NEEDED = (*TEXTS, *WHOLE, "value")


def parquet_bytes(records: Sequence[Record]) -> bytes:
    """Return records as one Parquet file, which names its schema.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow, parquet = _pyarrow("or -o FILE.csv")
    table = arrow.Table.from_pandas(records_frame(records), preserve_index=False)
    named = {**(table.schema.metadata or {}), _KEY: str(SCHEMA).encode()}
    buffer = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata(named), buffer)
    return buffer.getvalue()


def read_records(path: Path) -> pd.DataFrame:
    """Return what tables need of the records in a Parquet file; texts are categories.

    Raises:
        MissingExtraError: pyarrow is not installed.
        ReportError: no Parquet file, one of a newer hpctrain, or one without a needed column.
    """
    arrow, parquet = _pyarrow("or use a CSV file")
    try:
        with parquet.ParquetFile(path, read_dictionary=list(TEXTS)) as file:
            _check(path, file.schema_arrow)
            table = file.read(columns=list(_NEEDED), use_pandas_metadata=False)
        columns = {name: _column(table[name], name) for name in _NEEDED}
    except (arrow.ArrowException, OSError) as error:
        raise ReportError(f"{path}: cannot be read as Parquet: {_first_line(error)}") from None
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame


def _check(path: Path, schema: Any) -> None:
    stated = (schema.metadata or {}).get(_KEY, str(SCHEMA).encode()).decode(errors="replace")
    if not stated.isdecimal() or int(stated) > SCHEMA:
        raise ReportError(
            f"{path}: written by a newer hpctrain: records of schema {stated[:20]}, known is "
            f"{SCHEMA}",
            "pip install --upgrade hpctrain",
        )
    lacking = [name for name in _NEEDED if name not in schema.names]
    if lacking:
        raise ReportError(
            f"{path}: no records of hpctrain: the column {lacking[0]} is missing; needed are "
            + ", ".join(_NEEDED),
            "hpctrain collect LOG… -o FILE.parquet writes such a file",
        )


def _column(values: Any, name: str) -> Any:
    if name in TEXTS:
        return values.cast(_dictionary()).to_pandas()
    kind = NUMBERS[name]
    if kind == "Int64":
        absent = values.is_null().to_numpy()
        return pd.arrays.IntegerArray(values.fill_null(0).to_numpy().astype("int64"), absent)
    return values.to_numpy().astype(kind, copy=False)


def _dictionary() -> Any:
    import pyarrow

    return pyarrow.dictionary(pyarrow.int32(), pyarrow.string())


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _pyarrow(instead: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(
            "Parquet needs pyarrow, which is not installed", f"pip install pyarrow, {instead}"
        ) from None
    return pyarrow, pyarrow.parquet
