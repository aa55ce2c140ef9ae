"""Names of runs and of tables, and two rows or tables with one name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.imports.runs_from_table import table_names, table_study
from hpc_train.imports.table_file import read_table


def names(folder: Path, rows: str) -> list[str]:
    """Return the names of the runs of a table with a column `run`."""
    (folder / "t.csv").write_text(f"run,repetition,nodes,samples_per_second\n{rows}")
    study, _ = table_study([read_table(folder / "t.csv")])
    assert not [note for note in study.notes if "not used" in note]
    return [run.run_id for run in study.runs]


def test_rows_of_one_name_are_told_apart_by_their_repetition(tmp_path: Path) -> None:
    """The message on two rows of one name, and that on equal rows, advise this column."""
    rows = "a,1,1,500.123\na,2,1,500.123\nb,1,2,900\n,1,2,910\n"
    assert names(tmp_path, rows) == ["a-r1", "a-r2", "b", "row 4"]


@pytest.mark.parametrize(
    "rows",
    ["a,1,1,500\na,1,1,510\n", "a,,1,500\na,,1,510\n", "a,1,1,500\na,2,1,510\na-r1,1,2,900\n"],
    ids=["one repetition", "no repetition", "a name of another row"],
)
def test_a_second_run_of_one_name_is_an_error(tmp_path: Path, rows: str) -> None:
    with pytest.raises(LogParseError, match=r"t\.csv:\d: a second run called 'a(-r1)?'; the first"):
        names(tmp_path, rows)


def test_sheets_of_one_workbook_are_named(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.xlsx:v1.2", "a.xlsx:Runs", "b.xlsx:Runs", "c.csv")]
    assert table_names(paths) == ["a:v1.2", "a:Runs", "b", "c"]
    assert table_names(paths[:1]) == ["a"]
