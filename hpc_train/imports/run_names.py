"""Tables, and their column `run` -> the names of runs, each of one run only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.workbook import sheet_of

# Columns that only tell jobs with equal names or results apart.
REPETITION = ("repetition", "rep")


def table_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of tables: those of their files, and of the sheets of one workbook."""
    split = [sheet_of(path) for path in paths]
    stems = [file.stem for file, _ in split]
    return [
        f"{stem}:{sheet}" if sheet and stems.count(stem) > 1 else stem
        for stem, (_, sheet) in zip(stems, split, strict=True)
    ]


def run_names(
    table: ResultTable,
    stated: Sequence[str | None],
    before: str,
    others: Sequence[Mapping[str, str]],
) -> list[str]:
    """Return the name of each row, after `before`; `stated` are the cells of the column `run`.

    Rows with one name are distinguished by a column `repetition` among the `others`: `a-r1`,
    `a-r2` for two rows `a`, as runs of a study are called.

    Raises:
        LogParseError: two rows have one name.
    """
    names = [f"{before}{name or f'row {row}'}" for row, name in enumerate(stated, start=1)]
    counts = Counter(names)
    for row, name in enumerate(names):
        if counts[name] > 1 and (repetition := _repetition(others[row])):
            names[row] = f"{name}-r{repetition}"
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if first.setdefault(name, row) != row:
            raise LogParseError(
                f"{table.where(row)}: a second run called {name!r}; the first is "
                f"{table.where(first[name])}",
                "give each row another name, or add a column `repetition`",
            )
    return names


def _repetition(cells: Mapping[str, str]) -> str:
    return next((text for name, text in cells.items() if name.strip().lower() in REPETITION), "")
