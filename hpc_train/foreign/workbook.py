"""A sheet of an Excel workbook -> the columns and rows of a table of results.

Only stored values are read: a workbook keeps the last value of a formula, and nothing is computed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.base.extras import need
from hpc_train.foreign.csv_table import ResultTable, is_comment, table_of

if TYPE_CHECKING:
    from openpyxl import Workbook

WORKBOOKS = (".xlsx", ".xlsm")
_CSV = "save the sheet as CSV, and name that file"
# Cells, of which a sheet may have 17 billion.
_MOST_CELLS = 50_000_000


def sheet_of(path: Path) -> tuple[Path, str]:
    """Return workbook and sheet of `FILE.xlsx:SHEET`; the path and no sheet of any other one."""
    file, _, sheet = str(path).rpartition(":")
    if not sheet or Path(file).suffix.lower() not in WORKBOOKS or path.exists():
        return path, ""
    return Path(file), sheet


def read_workbook(path: Path, sheet: str = "") -> ResultTable:
    """Read a sheet; it must be named if several sheets have cells.

    Raises:
        MissingExtraError: openpyxl is not installed. LogParseError: it is no workbook, has no such
            sheet, or several sheets with cells and none is named.
    """
    need("an Excel workbook", "xlsx", "save the sheet as CSV", only=("openpyxl",))
    with _opened(path) as book:
        rows = _rows_of(path, book, sheet)
    if not rows:
        raise LogParseError(f"{path}: the sheet is empty", "a header and a row for each job")
    (line, names), *others = rows
    width = max(place + 1 for place, name in enumerate(names) if name is not None)
    kept = []
    for number, cells in others:
        if len(cells) > width and any(cell is not None for cell in cells[width:]):
            raise LogParseError(
                f"{path}:{number}: a cell beyond the last column of the header in row {line}",
                "the first row with cells is the header: begin other rows above it with `# `",
            )
        kept.append((number, tuple(map(_text, (*cells, *[None] * width)[:width]))))
    if not kept:
        raise LogParseError(f"{path}:{line}: a header, and no row below it", "one row for each job")
    return table_of(path, line, tuple(map(_text, names[:width])), kept)


@contextmanager
def _opened(path: Path) -> Iterator[Workbook]:
    from xml.etree.ElementTree import ParseError

    import openpyxl

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, ParseError, EOFError) as failure:
        raise LogParseError(f"{path}: not a whole Excel workbook: {failure}", _CSV) from None
    try:
        yield book
    finally:
        book.close()


def _rows_of(path: Path, book: Workbook, sheet: str) -> list[tuple[int, Sequence[Any]]]:
    names = [one.title for one in book.worksheets]
    if sheet and sheet not in names:
        raise LogParseError(
            f"{path}: no sheet is called {sheet!r}{nearest(sheet, names)}",
            f"sheets: {', '.join(names)}",
        )
    found = {
        name: rows
        for name in ([sheet] if sheet else names)
        if (rows := list(_rows(path, book[name])))
    }
    if len(found) > 1:
        raise LogParseError(
            f"{path}: {len(found)} sheets have cells: {', '.join(found)}",
            f"name one: --sheet {next(iter(found))!r}, or '{path}:{next(iter(found))}'",
        )
    return next(iter(found.values()), [])


def _rows(path: Path, sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield number and cells of each row, without empty rows and comments."""
    count = 0
    try:
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            count += len(cells)
            if count > _MOST_CELLS:
                raise LogParseError(f"{path}: more than {_MOST_CELLS} cells", _CSV)
            stated = [cell for cell in cells if cell is not None and str(cell).strip()]
            if stated and not is_comment(",".join(map(str, stated))):
                yield number, cells
    except (KeyError, ValueError, SyntaxError, zipfile.BadZipFile, EOFError) as failure:
        raise LogParseError(f"{path}: not a whole Excel workbook: {failure}", _CSV) from None


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return "" if cell is None else str(cell).strip()
