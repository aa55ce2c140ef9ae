"""Report -> files: the options that each format requires, and writing one format or all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import msgspec

from hpc_train.base.errors import NothingToDrawError, StoreError
from hpc_train.base.extras import need
from hpc_train.base.registry import load
from hpc_train.reports.formats import text
from hpc_train.reports.formats.text import WIDTH
from hpc_train.reports.gates import junit, verdicts_of
from hpc_train.reports.report import Report
from hpc_train.runs.json_files import write_file
from hpc_train.scaling.report_options import ReportOptions

FORMAT_OF = {
    ".md": "markdown", ".csv": "csv", ".json": "json", ".txt": "text", ".tex": "latex",
    ".html": "html",
}  # fmt: skip
TIDY = ".parquet"
# Formats that name the logs.
DIGESTED = ("markdown", "json", "html")


def default_options(path: Path | None, form: str | None) -> ReportOptions:
    """Return the options that a file with this name or format requires."""
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
        StoreError: an extension without a format.
        MissingExtraError: Parquet without pyarrow.
    """
    if form is None and path is not None and path.suffix == TIDY:
        need("Parquet", "parquet", "use -o FILE.csv")
    if form is not None and path is not None and path.suffix in IMAGES:
        raise StoreError(f"{path} is a figure, not {form}", "leave out one of -f and -o")
    if form is not None and f".{form}" in IMAGES:
        raise StoreError(f"-f {form}: a figure is a file", f"-o figure.{form}")
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
        StoreError: an extension without a format, or a file that cannot be written.
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


def write_checks(report: Report, path: Path) -> None:
    """Write the checks of a report as JUnit XML.

    Raises:
        StoreError: the file cannot be written.
    """
    write_file(path, junit(report.name, verdicts_of(report)))


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
    from hpc_train.foreign.parquet import table_bytes
    from hpc_train.reports.formats.csv_table import TIDY_COLUMNS, tidy_rows

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


def render_report(
    report: Report, form: str, columns: int = WIDTH, *, first_screen: bool = False
) -> str:
    """Write a report in a registered format; text is `columns` characters wide.

    `first_screen` is text without notes, provenance and further tables.

    Raises:
        UnknownNameError: no such format.
    """
    if form == "text":
        return text.first_screen(report, columns) if first_screen else text.render(report, columns)
    return cast(Callable[[Report], str], load("formats", form))(report)


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
