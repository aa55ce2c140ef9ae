"""CSV files: which are tables of results, their rows with lines, and their numbers."""

from pathlib import Path

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.foreign.table_file import is_result_table, read_table
from tests.cases import cases


@pytest.mark.parametrize(
    ("name", "content", "is_table"),
    cases("foreign/csv_tables.yaml", "a_table_of_results_is_known_by_its_header"),
)
def test_a_table_of_results_is_known_by_its_header(
    tmp_path: Path, name: str, content: str, *, is_table: bool
) -> None:
    (tmp_path / name).write_text(content)
    assert is_result_table(tmp_path / name) is is_table


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_a_byte_order_mark_is_read(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "t.csv"
    # As "Unicode Text" of Excel, and what `>` of PowerShell writes.
    path.write_bytes("\ufeffnodes\tmodel\r\n1\tä\r\n2\t\u0a0d\r\n".encode(codec))
    assert is_result_table(path)
    table = read_table(path)
    assert table.names == ("nodes", "model")
    assert table.rows == ((2, ("1", "ä")), (3, ("2", "\u0a0d")))
    path.write_bytes("\ufeffepoch,loss\n1,2\n".encode(codec))
    assert not is_result_table(path)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_rows_have_the_line_on_which_they_begin(tmp_path: Path, separator: str) -> None:
    rows = ("# first", "", " nodes ,x", "1, a ", "# a comment", '2,"b\nc"', ",", "3,d")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows).replace(",", separator) + "\n")
    table = read_table(path)
    assert (table.line, table.names) == (3, ("nodes", "x"))
    assert table.rows == ((4, ("1", "a")), (6, ("2", "b\nc")), (9, ("3", "d")))


@pytest.mark.parametrize("separator", [";", "|"])
@pytest.mark.parametrize("line", ["sep={}", "\ufeffSEP={}", '"sep={}"'])
def test_the_line_of_excel_names_no_column(tmp_path: Path, line: str, separator: str) -> None:
    path = tmp_path / "t.csv"
    lines = (line.format(separator), f"nodes{separator}x", f"1{separator}a", "")
    path.write_text("\r\n".join(lines), encoding="utf-8")
    assert is_result_table(path)
    table = read_table(path)
    assert (table.line, table.names, table.rows) == (2, ("nodes", "x"), ((3, ("1", "a")),))


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"PK\x03\x04\x14\0\xff\xff", "zip archive, workbook or checkpoint"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"\x89HDF\r\n\x1a\n", "HDF5 file"),
    ],
)
def test_a_file_of_another_kind_is_named_whatever_it_is_called(
    tmp_path: Path, start: bytes, kind: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(start)
    with pytest.raises(LogParseError, match=rf"t\.csv: {kind}: "):
        read_table(path)
