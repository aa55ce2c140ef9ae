"""Report -> files: the options that each format requires; one format or all of them."""

import math
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from hpc_train.base.errors import NothingToDrawError, ReportError, StoreError, nearest
from hpc_train.base.extras import need
from hpc_train.base.registry import load
from hpc_train.reports import text
from hpc_train.reports.report import Paper, Report, ReportOptions
from hpc_train.runs.json_files import write_file
from hpc_train.scaling.measurements import Target

FORMAT_OF = {
    ".md": "markdown", ".csv": "csv", ".json": "json", ".txt": "text", ".tex": "latex",
    ".html": "html",
}  # fmt: skip
TIDY = ".parquet"
IMAGES = (".svg", ".png", ".pdf")
# The texts of a folder.
TEXTS = {
    "report.html": "html", "report.md": "markdown", "report.tex": "latex", "report.json": "json",
    "points.csv": "csv", "tidy.csv": "tidy",
}  # fmt: skip


def default_options(path: Path | None, form: str | None) -> ReportOptions:
    """Return the options that a file with this name or format requires."""
    if form is None and _is_folder(path):
        return ReportOptions(figures=True, images=("svg", "png", "pdf"), details=True)
    ending = path.suffix if path is not None else ""
    if form is None and ending in IMAGES:
        return ReportOptions(figures=True, images=(ending[1:],), main_figure_only=True)
    shown = form or FORMAT_OF.get(ending, "text")
    if shown == "html":
        return ReportOptions(figures=True, images=("svg",), details=True)
    return ReportOptions(figures=shown == "markdown" and path is not None)


def check_format(form: str | None, path: Path | None) -> None:
    """Refuse an unknown format or extension before any log is read.

    Raises:
        UnknownNameError: no such format.
        StoreError: an extension without a format.
        MissingExtraError: Parquet without pyarrow.
    """
    ending = path.suffix if path is not None else ""
    if form is not None:
        if ending in IMAGES:
            raise StoreError(f"{path} is a figure, not {form}", "leave out one of -f and -o")
        if f".{form}" in IMAGES:
            raise StoreError(f"-f {form}: a figure is a file", f"-o figure.{form}")
        load("formats", form)
    elif ending == TIDY:
        need("Parquet", "parquet", "use -o FILE.csv")
    elif path is not None and ending not in (*FORMAT_OF, *IMAGES) and not _is_folder(path):
        endings = ", ".join((*FORMAT_OF, *IMAGES, TIDY))
        raise StoreError(
            f"{path}: give a format with -f, or an extension of: {endings}; a name without an "
            "extension is a folder for all of them"
        )


def write_report(report: Report, path: Path, form: str | None) -> tuple[Path, ...]:
    """Write a report to a file, and its figures beside it; return what was written.

    The format follows the file's extension unless it is given. The extension of an image writes the
    main figure only; a folder, which is created, receives every format, Parquet if pyarrow is
    installed.

    Raises:
        StoreError: an extension without a format, or a file that cannot be written.
        UnknownNameError: no such format.
        MissingExtraError: Parquet without pyarrow.
        NothingToDrawError: a figure, and no value is known at a size.
    """
    check_format(form, path)
    return tuple(_written(report, path, form))


def _written(report: Report, path: Path, form: str | None) -> Iterator[Path]:
    if form is None and _is_folder(path):
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"{path}: cannot be created: {error.strerror}"
            raise StoreError(message, "name another folder") from None
        for name, own in TEXTS.items():
            write_file(path / name, render_report(report, own).encode())
            yield path / name
        if find_spec("pyarrow"):
            yield from _written(report, path / f"tidy{TIDY}", None)
        yield from _write_figures(report, path / "report.md")
        return
    if form is None and path.suffix == TIDY:
        from hpc_train.foreign.parquet import table_bytes
        from hpc_train.reports.csv_table import TIDY_COLUMNS, tidy_rows

        content = table_bytes(tidy_rows(report.name, report.run_rows), TIDY_COLUMNS)
    elif form is None and path.suffix in IMAGES:
        if not report.figures:
            reasons = (str(row["problem"]) for row in report.run_rows if row["problem"])
            why = next(reasons, report.summary[0] if report.summary else "no result")
            hint = f"the same command without -o {path} prints the report"
            offered = (line.partition("; if ")[2] for line in report.summary)
            hint = next((f"if {one}" for one in offered if one), hint)
            message = f"{path} was not written, there is nothing to draw: {why}"
            raise NothingToDrawError(message, hint)
        content = report.figures[0].images[path.suffix[1:]]
    else:
        form = form or FORMAT_OF[path.suffix]
        # The main figure is named like the page, the others `PAGE-<name>`.
        named = tuple(
            replace(figure, name=f"{path.stem}-{figure.name}" if i else path.stem)
            for i, figure in enumerate(report.figures)
        )
        report = replace(report, figures=named) if form == "markdown" else report
        content = render_report(report, form).encode()
    write_file(path, content)
    yield path
    if form == "markdown":
        yield from _write_figures(report, path)


def _write_figures(report: Report, page: Path) -> Iterator[Path]:
    """Write every image of every figure beside a page, and the numbers of each as CSV."""
    from hpc_train.reports.csv_table import table_text

    for figure in report.figures:
        files = dict(figure.images)
        if figure.data is not None:
            files["csv"] = table_text(figure.data).encode()
        for ending, content in files.items():
            target = page.with_name(f"{figure.name}.{ending}")
            write_file(target, content)
            yield target


def _is_folder(path: Path | None) -> bool:
    """Whether a path is a folder: an existing one, or a name without an extension."""
    return path is not None and (path.is_dir() or not path.suffix)


def render_report(
    report: Report, form: str, columns: int = text.WIDTH, *, first_screen: bool = False
) -> str:
    """Write a report in a registered format; text is `columns` characters wide.

    `first_screen` is text without notes, provenance and further tables.

    Raises:
        UnknownNameError: no such format.
    """
    if form == "text":
        return text.first_screen(report, columns) if first_screen else text.render(report, columns)
    return cast(Callable[[Report], str], load("formats", form))(report)


_HINT = "--target accuracy=0.93, or --target loss=0.2"


def target_of(text: str | None) -> Target | None:
    """Return the target of `accuracy=0.93` or `loss=0.2`; None without one.

    Raises:
        ReportError: another metric, or an invalid value.
    """
    if text is None:
        return None
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if name == "loss" and math.isfinite(value):
        return Target(metric="loss", value=value)
    if name == "accuracy" and 0 < value <= 1:
        return Target(metric="accuracy", value=value)
    wrong = "neither loss=NUMBER nor accuracy=FRACTION, above 0 and at most 1"
    near = nearest(name, ("accuracy", "loss")) if name not in ("accuracy", "loss") else ""
    near = f"; did you mean {value / 100:g}?" if name == "accuracy" and 1 < value <= 100 else near
    raise ReportError(f"--target {text}: {wrong}{near}", _HINT)


_LENGTH = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,5})?) ?([a-z]{1,9})?")
# Inches.
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
NARROWEST, WIDEST = 2.0, 20.0


def paper_of(width: str | None, *, title: bool) -> Paper:
    """Return the paper of `3.3in`, with a title or not; None is a screen.

    Raises:
        ReportError: no length, or a width that no figure can have.
    """
    if width is None:
        return Paper(title=title)
    found = _LENGTH.fullmatch(width.strip())
    inches = float(found[1]) * UNITS.get(found[2], 0) if found else 0
    if not NARROWEST <= inches <= WIDEST:
        raise ReportError(
            f"--width {width}: not a length of 2in to 20in, as 3.3in, 8.4cm, 84mm or 240pt",
            "--width 3.3in, the column of many journals",
        )
    return Paper(width=inches, title=title)
