"""Figures of a report -> files: images, and CSV files with their numbers."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpc_train.errors import NothingToDrawError
from hpc_train.json_files import write_file
from hpc_train.model.report import Report

IMAGES = (".svg", ".png", ".pdf")


def named_after(report: Report, stem: str) -> Report:
    """Name the main figure like the page, the others `PAGE-<name>`."""
    named = tuple(
        msgspec.structs.replace(figure, name=f"{stem}-{figure.name}" if i else stem)
        for i, figure in enumerate(report.figures)
    )
    return msgspec.structs.replace(report, figures=named)


def write_figures(report: Report, page: Path) -> tuple[Path, ...]:
    """Write every image of every figure beside a page, and the numbers of each as CSV.

    Raises:
        StoreError: a file cannot be written.
    """
    from hpc_train.reports.formats.csv_table import table_text

    written = []
    for figure in report.figures:
        texts = {"csv": table_text(figure.data).encode()} if figure.data else {}
        pictures = {form: one for form, one in figure.images.items() if f".{form}" in IMAGES}
        for ending, content in {**pictures, **texts}.items():
            target = page.with_name(f"{figure.name}.{ending}")
            write_file(target, content)
            written.append(target)
    return tuple(written)


def write_figure(report: Report, path: Path) -> Path:
    """Write the main figure in the image format of the path's extension.

    Raises:
        NothingToDrawError: no value is known at a size. StoreError: the file cannot be written.
    """
    if not report.figures:
        reasons = (str(row["problem"]) for row in report.run_rows if row["problem"])
        why = next(reasons, report.summary[0] if report.summary else "no result")
        hint = f"the same command without -o {path} prints all that is known"
        raise NothingToDrawError(f"{path} was not written, there is nothing to draw: {why}", hint)
    write_file(path, report.figures[0].images[path.suffix.removeprefix(".")])
    return path
