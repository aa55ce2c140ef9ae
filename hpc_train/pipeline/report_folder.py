"""Report -> a folder with all formats: page, tables, numbers, images."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from hpc_train.errors import StoreError
from hpc_train.files import write_file
from hpc_train.model.report import Report
from hpc_train.pipeline.render_report import render_report
from hpc_train.reports.figure_files import IMAGES, write_figures

TEXTS = {
    "report.html": "html", "report.md": "markdown", "report.tex": "latex", "report.json": "json",
    "points.csv": "csv", "tidy.csv": "tidy",
}  # fmt: skip


def is_folder(path: Path | None) -> bool:
    """Whether a path is a folder: an existing one, or a name without an extension."""
    return path is not None and (path.is_dir() or not path.suffix)


def write_folder(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write a report in every format into a folder, which is created; return the paths.

    `tidy.parquet` needs pyarrow, and is left out without it.

    Raises:
        StoreError: a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}: cannot be created: {error.strerror}", "name another folder"
        ) from None
    return tuple(_written(report, folder))


def tidy_parquet(report: Report) -> bytes:
    """Return every value of every run as Parquet: the rows of `-f tidy`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    from hpc_train.reports.formats.csv_table import TIDY_COLUMNS, tidy_rows
    from hpc_train.tables.parquet import table_bytes

    return table_bytes(tidy_rows(report.name, report.run_rows), TIDY_COLUMNS)


def _written(report: Report, folder: Path) -> Iterator[Path]:
    for name, form in TEXTS.items():
        write_file(folder / name, render_report(report, form).encode())
        yield folder / name
    if find_spec("pyarrow"):
        write_file(folder / "tidy.parquet", tidy_parquet(report))
        yield folder / "tidy.parquet"
    pictures = tuple(
        msgspec.structs.replace(
            figure, images={k: v for k, v in figure.images.items() if f".{k}" in IMAGES}
        )
        for figure in report.figures
    )
    drawn = msgspec.structs.replace(report, figures=pictures)
    yield from write_figures(drawn, folder / "report.md")
