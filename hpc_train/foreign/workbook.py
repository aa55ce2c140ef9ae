"""A sheet of an Excel workbook -> the columns and rows of a table of results.

Only stored values are read: a workbook keeps the last value of a formula, and nothing is computed.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.base.extras import need
from hpc_train.foreign.csv_table import ResultTable, is_comment, table_of

WORKBOOKS = (".xlsx", ".xlsm")
_Rows = list[tuple[int, list[Any]]]


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
    found = {name: rows for name, rows in _sheets(path, sheet).items() if rows}
    if len(found) > 1:
        raise LogParseError(
            f"{path}: {len(found)} sheets have cells: {', '.join(found)}",
            f"name one: --sheet {next(iter(found))!r}, or '{path}:{next(iter(found))}'",
        )
    if not found:
        raise LogParseError(f"{path}: the sheet is empty", "a header and a row for each job")
    (line, names), *others = next(iter(found.values()))
    width = max(place + 1 for place, name in enumerate(names) if name != "")
    for number, cells in others:
        if any(cell != "" for cell in cells[width:]):
            raise LogParseError(
                f"{path}:{number}: a cell beyond the last column of the header in row {line}",
                "the first row with cells is the header: begin other rows above it with `# `",
            )
    if not others:
        raise LogParseError(f"{path}:{line}: a header, and no row below it", "one row for each job")
    rows = ((number, list(map(_text, cells[:width]))) for number, cells in others)
    return table_of(path, line, tuple(map(_text, names[:width])), rows)


def _sheets(path: Path, sheet: str) -> dict[str, _Rows]:
    """Return number and cells of the rows of each sheet, without empty rows and comments."""
    import pandas as pd

    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            names = [str(name) for name in book.sheet_names]
            if sheet and sheet not in names:
                raise LogParseError(
                    f"{path}: no sheet is called {sheet!r}{nearest(sheet, names)}",
                    f"sheets: {', '.join(names)}",
                )
            wanted = [sheet] if sheet else names
            cells = pd.read_excel(book, wanted, header=None, dtype=object, na_filter=False)
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, SyntaxError, EOFError) as failure:
        raise LogParseError(
            f"{path}: not a whole Excel workbook: {failure}",
            "save the sheet as CSV, and name that file",
        ) from None
    found = {str(name): enumerate(own.to_numpy().tolist(), 1) for name, own in cells.items()}
    return {name: list(filter(_is_row, rows)) for name, rows in found.items()}


def _is_row(row: tuple[int, list[Any]]) -> bool:
    stated = [str(cell) for cell in row[1] if str(cell).strip()]
    return bool(stated) and not is_comment(",".join(stated))


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(cell).strip()
