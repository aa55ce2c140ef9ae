"""Figures of a report -> files: images, and CSV files with their numbers."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpc_train.errors import StoreError
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
        StoreError: there is no figure, or the file cannot be written.
    """
    if not report.figures:
        raise StoreError(f"{path}: nothing to draw; no run of this study has a result")
    write_file(path, report.figures[0].images[path.suffix.removeprefix(".")])
    return path
