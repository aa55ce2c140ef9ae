"""Sheets of Excel workbooks, which openpyxl writes here."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.table_file import is_result_table, read_table, sheet_of

ROWS: list[list[Any]] = [["nodes", "step_time", "torch"], [1, 0.5, "2.9"], [2, 0.3, None]]


def written(folder: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    """Write a workbook with these sheets."""
    book = openpyxl.Workbook()
    del book["Sheet"]
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    path = folder / "t.xlsx"
    book.save(path)
    return path


def test_the_only_sheet_with_cells_is_read(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, Empty=[], Runs=ROWS))
    assert (table.line, table.names) == (1, ("nodes", "step_time", "torch"))
    assert table.rows == ((2, ("1", "0.5", "2.9")), (3, ("2", "0.3", "")))


def test_empty_rows_comments_and_narrow_rows(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["# of May"], [], ["nodes", "x"], [None, " "], [1.0], [2, True]]
    table = read_table(written(tmp_path, Runs=rows))
    assert (table.line, table.names) == (3, ("nodes", "x"))
    assert table.rows == ((5, ("1", "")), (6, ("2", "true")))


def test_several_sheets_with_cells_need_a_name(tmp_path: Path) -> None:
    path = written(tmp_path, Runs=ROWS, Notes=[["by me"]])
    with pytest.raises(LogParseError, match="2 sheets have cells: Runs, Notes") as caught:
        read_table(path)
    assert caught.value.hint == f"name one: '{path}:Runs'"
    assert read_table(Path(f"{path}:Runs")).names == ("nodes", "step_time", "torch")
    with pytest.raises(LogParseError, match="no sheet is called 'Rnus'; did you mean 'Runs'"):
        read_table(Path(f"{path}:Rnus"))


def test_the_sheet_may_follow_the_name_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, Runs=ROWS, **{"v1.2 a": ROWS[:2]})
    for sheet, count in (("Runs", 2), ("v1.2 a", 1)):
        named = Path(f"{path}:{sheet}")
        assert sheet_of(named) == (path, sheet)
        assert is_result_table(named)
        table = read_table(named)
        assert (table.path, len(table.rows)) == (named, count)
    for other in ("t.csv:Runs", "t.xlsx", "t.xlsx:", "-", "Runs"):
        assert sheet_of(tmp_path / other) == (tmp_path / other, "")


def test_a_formula_with_a_value_is_that_value(tmp_path: Path) -> None:
    path = written(tmp_path, Runs=[["nodes", "step_time"], [1, "=0.25*2"]])
    stored = tmp_path / "stored.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stored, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.endswith("sheet1.xml"):
                assert b"<f>0.25*2</f>" in text
                for empty in (b"<v></v>", b"<v />", b"<v/>"):
                    text = text.replace(empty, b"<v>0.5</v>")
                assert b"<v>0.5</v>" in text
            new.writestr(name, text)
    assert read_table(stored).rows == ((2, ("1", "0.5")),)


@pytest.mark.parametrize("share", [0, 0.5, 0.98])
def test_a_file_that_was_cut_is_refused(tmp_path: Path, share: float) -> None:
    path = written(tmp_path, Runs=ROWS)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    with pytest.raises(LogParseError, match=r"t\.xlsx: not a whole Excel workbook: ") as caught:
        read_table(path)
    assert "CSV" in caught.value.hint
