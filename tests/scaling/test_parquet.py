import io
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hpc_train.base.errors import LogParseError, MissingExtraError, ReportError
from hpc_train.foreign.parquet import has_records, parquet_bytes, read_records, records_frame
from hpc_train.foreign.table_file import read_table
from hpc_train.logs.record import packs_of
from hpc_train.scaling.record_arrays import gathered
from hpc_train.scaling.runs import run_frame
from tests.scaling.studies import expected, record, steps, study

pyarrow = pytest.importorskip("pyarrow")
RECORDS = [
    *steps("a", [[1.0, 2.0], [3.0, 1.0]]),
    record("a", "loss", float("nan"), node="n1"),
    record("a", "busbw", 1.0, message_size=8),
]


def written(path: Path, **metadata: str) -> Path:
    """Write the records as a file of another version would be."""
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(parquet_bytes(records_frame(packs_of(RECORDS)))))
    parquet.write_table(table.replace_schema_metadata(metadata), path)
    return path


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_bytes(parquet_bytes(records_frame(packs_of(RECORDS))))
    found = read_records(tmp_path / "r.parquet")
    pd.testing.assert_frame_equal(
        found.drop(columns="unit"), gathered(packs_of(RECORDS)).drop(columns="unit"),
        check_dtype=False, check_categorical=False,
    )  # fmt: skip
    asked = study([expected("a", gpus=2)])
    pd.testing.assert_frame_equal(run_frame(asked, found), run_frame(asked, RECORDS))


@pytest.mark.parametrize("schema", ["2", "1000", "later"])
def test_a_file_of_a_newer_version_is_refused(tmp_path: Path, schema: str) -> None:
    path = written(tmp_path / "r.parquet", hpctrain_schema=schema)
    with pytest.raises(ReportError, match=r"r\.parquet: written by a newer hpctrain") as error:
        read_records(path)
    assert error.value.hint == "pip install --upgrade hpctrain"


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pd.DataFrame({"run": ["a"], "speed": [1.0]}).to_parquet(path)
    with pytest.raises(ReportError, match="the column source is missing"):
        read_records(path)


def test_wrong_types_and_damage_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    wrong = records_frame(packs_of(RECORDS)).astype({"value": "str"})
    wrong["value"] = "fast"
    wrong.to_parquet(path)
    with pytest.raises(ReportError, match=r"r\.parquet: .*column 'value'"):
        read_records(path)
    path.write_bytes(parquet_bytes(records_frame(packs_of(RECORDS)))[:-20])
    with pytest.raises(ReportError, match="cannot be read as Parquet"):
        read_records(path)


def test_without_pyarrow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="Parquet needs pyarrow"):
        read_records(tmp_path / "r.parquet")
    with pytest.raises(MissingExtraError, match="Parquet needs pyarrow"):
        parquet_bytes(records_frame(packs_of(RECORDS)))


def foreign(folder: Path, **columns: list[Any]) -> Path:
    """Write a Parquet file of another program."""
    path = folder / "t.parquet"
    pd.DataFrame(columns).to_parquet(path)
    return path


def test_columns_of_another_program_are_texts(tmp_path: Path) -> None:
    path = foreign(tmp_path, nodes=[1, 2], step_time=[0.5, float("nan")], torch=[" 2.9 ", None])
    assert not has_records(path)
    table = read_table(path)
    assert table.names == ("nodes", "step_time", "torch")
    assert table.rows == ((2, ("1", "0.5", "2.9")), (3, ("2", "", "")))


def test_a_foreign_file_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogParseError, match="a header, and no row below it"):
        read_table(foreign(tmp_path, nodes=[]))
