"""Records -> the DataFrame of Python users and Parquet; Parquet -> a frame."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from hpc_train.base.errors import ReportError, newer_version
from hpc_train.base.extras import need
from hpc_train.base.metrics import UNITS
from hpc_train.logs.record import Pack, Record
from hpc_train.scaling.record_arrays import TEXTS, WHOLE, gathered

NUMBERS = {
    "line": "int64",
    "value": "float64",
    "steps": "int64",
    **dict.fromkeys(("step", "rank", "message_size"), "Int64"),
}
SCHEMA = 1
_KEY = b"hpctrain_schema"
_NEEDED = (*TEXTS, *WHOLE, "value", "message_size")


def records_frame(packs: Iterable[Pack]) -> pd.DataFrame:
    """Return one row per record, one column per field of `Record`, in that order.

    `step`, `rank` and `message_size` [B] are nullable integers, `value` is a float in `unit`; names
    are text, `node` None where the log names none.
    """
    frame = gathered(packs)
    texts = frame.select_dtypes("category").astype(object)
    named = texts.where(texts.notna(), None).to_dict("list")
    found: pd.DataFrame = frame.assign(**{str(name): own for name, own in named.items()})
    return found.astype(NUMBERS)


def table_bytes(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> bytes:
    """Return rows as one Parquet file, with these columns in this order.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    frame = pd.DataFrame.from_records(list(rows), columns=list(names))
    is_whole = frame.map(lambda one: one is None or isinstance(one, int)).all()
    whole = {name: "Int64" for name in names if is_whole[name]}
    return parquet_bytes(frame.astype(whole))


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Return a frame as one Parquet file, which contains its schema version.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow, parquet = _pyarrow("use -o FILE.csv")
    table = arrow.Table.from_pandas(frame, preserve_index=False)
    named = {**(table.schema.metadata or {}), _KEY: str(SCHEMA).encode()}
    buffer = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata(named), buffer)
    return buffer.getvalue()


def read_records(path: Path) -> pd.DataFrame:
    """Return the records of a Parquet file, as `gathered` does.

    Raises:
        MissingExtraError: pyarrow is not installed.
        ReportError: no Parquet file, one of a newer hpctrain, or one without a needed column.
    """
    with _parquet(path) as parquet:
        schema = parquet.read_schema(path)
        stated = (schema.metadata or {}).get(_KEY, str(SCHEMA).encode()).decode(errors="replace")
        if not stated.isdecimal() or int(stated) > SCHEMA:
            raise ReportError(*newer_version(str(path), stated[:20], SCHEMA))
        lacking = [name for name in _NEEDED if name not in schema.names]
        if lacking:
            raise ReportError(
                f"{path}: no records of hpctrain: the column {lacking[0]} is missing; needed are "
                + ", ".join(_NEEDED),
                "hpctrain collect LOG… -o FILE.parquet writes such a file",
            )
        frame = pd.read_parquet(path, columns=list(_NEEDED), dtype_backend="pyarrow")
        whole: dict[str, Any] = {name: frame[name].fillna(1) for name in ("line", "steps")}
        whole["unit"] = frame["metric"].astype(object).map(UNITS).fillna("1")
        kinds = dict.fromkeys((*TEXTS, "unit"), "category") | dict.fromkeys(NUMBERS, "Float64")
        floats = dict.fromkeys(NUMBERS, "float64") | dict.fromkeys(("line", "steps"), "int64")
        # Of missing values older versions of pandas make floats only by way of Float64.
        found: pd.DataFrame = frame.assign(**whole).astype(kinds).astype(floats)
    return found[list(Record.__struct_fields__)]


def has_records(path: Path) -> bool:
    """Whether a Parquet file has records of hpctrain.

    Raises:
        MissingExtraError: pyarrow is not installed. ReportError: no Parquet file.
    """
    with _parquet(path) as parquet:
        return not {"metric", "parser"}.isdisjoint(parquet.read_schema(path).names)


def read_texts(path: Path) -> list[tuple[str, ...]]:
    """Return the names of the columns of any Parquet file, and the cells of its rows as text.

    Raises:
        MissingExtraError: pyarrow is not installed. ReportError: no Parquet file.
    """
    with _parquet(path) as parquet, parquet.ParquetFile(path) as file:
        table = file.read()
    # A missing value of pandas is NaN.
    cells = (
        ["" if cell is None or cell != cell else str(cell) for cell in column.to_pylist()]
        for column in table.columns
    )
    return [tuple(table.column_names), *zip(*cells, strict=True)]


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    """Yield the module that reads Parquet; what it refuses is an error of the file."""
    arrow, parquet = _pyarrow("use a CSV file")
    try:
        yield parquet
    except (arrow.ArrowException, OSError, ValueError, TypeError) as error:
        said = str(error).partition("\n")[0]
        raise ReportError(f"{path}: cannot be read as Parquet: {said}") from None


def _pyarrow(instead: str) -> tuple[Any, Any]:
    need("Parquet", "parquet", instead)
    import pyarrow
    import pyarrow.parquet

    return pyarrow, pyarrow.parquet
