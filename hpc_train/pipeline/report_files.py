"""Report -> files: formats, their requirements, and writing."""

from __future__ import annotations

from pathlib import Path

from hpc_train.errors import StoreError
from hpc_train.files import write_file
from hpc_train.model.report import Report
from hpc_train.pipeline.asked import ReportOptions
from hpc_train.pipeline.render_report import render_report
from hpc_train.pipeline.report_folder import is_folder, tidy_parquet, write_folder
from hpc_train.registry import load
from hpc_train.reports.figure_files import IMAGES, named_after, write_figure, write_figures

FORMAT_OF = {
    ".md": "markdown", ".csv": "csv", ".json": "json", ".txt": "text", ".tex": "latex",
    ".html": "html",
}  # fmt: skip
TIDY = ".parquet"
# Formats that name the logs.
DIGESTED = ("markdown", "json", "html")


def asked_for(path: Path | None, form: str | None) -> ReportOptions:
    """Return the options of a file with that name or format."""
    if form is None and is_folder(path):
        every = ("svg", "png", "pdf", "inline")
        return ReportOptions(figures=True, images=every, details=True, digests=True)
    ending = path.suffix if path is not None else ""
    shown = form or FORMAT_OF.get(ending, "text")
    if shown == "html":
        return ReportOptions(figures=True, images=("inline",), details=True, digests=True)
    if form is None and ending in IMAGES:
        return ReportOptions(
            figures=True, images=(ending.removeprefix("."),), main_figure_only=True
        )
    drawn = shown == "markdown" and path is not None
    return ReportOptions(figures=drawn, digests=shown in DIGESTED)


def check_format(form: str | None, path: Path | None) -> None:
    """Refuse an unknown format or extension before any log is read.

    Raises:
        UnknownNameError: no such format.
        StoreError: an ending without a format.
    """
    if form is not None:
        load("formats", form)
    elif path is not None and path.suffix not in (*FORMAT_OF, *IMAGES, TIDY):
        if is_folder(path):
            return
        endings = ", ".join((*FORMAT_OF, *IMAGES, TIDY))
        raise StoreError(
            f"{path}: give a format with -f, or an extension of: {endings}; a name without an "
            "extension is a folder for all of them"
        )


def write_report(report: Report, path: Path, form: str | None) -> tuple[Path, ...]:
    """Write a report to a file, and its figures beside it; return what was written.

    The format follows the file's extension unless it is given. The extension of an image writes the
    main figure only; a folder receives every format.

    Raises:
        StoreError: an ending without a format, or a file that cannot be written.
        UnknownNameError: no such format.
        MissingExtraError: Parquet without pyarrow.
    """
    check_format(form, path)
    if form is None and is_folder(path):
        return write_folder(report, path)
    if form is None and path.suffix in IMAGES:
        return (write_figure(report, path),)
    if form is None and path.suffix == TIDY:
        write_file(path, tidy_parquet(report))
        return (path,)
    form = form or FORMAT_OF[path.suffix]
    figures: tuple[Path, ...] = ()
    if form == "markdown" and report.figures:
        report = named_after(report, path.stem)
        figures = write_figures(report, path)
    write_file(path, render_report(report, form).encode())
    return (path, *figures)
