"""Evidence -> report -> text or files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.report import Report
from hpc_train.pipeline.asked import Asked
from hpc_train.pipeline.details import details
from hpc_train.pipeline.digests import Digests
from hpc_train.pipeline.evidence import Evidence
from hpc_train.pipeline.figure_files import IMAGES, named_after, write_figure, write_figures
from hpc_train.pipeline.gates import checked, governed
from hpc_train.pipeline.provenance import provenance
from hpc_train.registry import load
from hpc_train.runs.files import write_file

DEFAULT = Asked()
FORMAT_OF = {
    ".md": "markdown", ".csv": "csv", ".json": "json", ".txt": "text", ".tex": "latex",
    ".html": "html",
}  # fmt: skip
# Formats that name the logs.
DIGESTED = ("markdown", "json", "html")


def build_report(found: Evidence, asked: Asked = DEFAULT) -> Report:
    """Make the tables of a study and, where they are asked for, its figures.

    Raises:
        ReportError: the runs contradict what the study declares.
    """
    from hpc_train.reports.scaling import scaling_report
    from hpc_train.tables.comparability import separated
    from hpc_train.tables.fits import fits
    from hpc_train.tables.runs import run_frame
    from hpc_train.tables.speedup import speedup_frame

    study = governed(found.study, found.own, asked)
    study = msgspec.structs.replace(study, allow_mixed=asked.allow_mixed or study.allow_mixed)
    runs, apart = separated(run_frame(study, found.records), study)
    study = msgspec.structs.replace(study, notes=(*study.notes, *apart))
    points = speedup_frame(runs, study)
    laws = fits(points, asked.forecast, force=asked.force)
    report = scaling_report(study, runs, points, wide=asked.wide)
    report = checked(report, study, (runs, points), found, asked)
    facts = provenance(found, Digests() if asked.digests else None)
    known = details(found) if asked.details else ((), {})
    report = msgspec.structs.replace(
        report, partial=bool(study.unfinished), provenance=facts, details=known[0], scripts=known[1]
    )
    if not asked.figures or not points["n_ok"].any():
        return report
    from hpc_train.reports.figures import FIGURES, MAIN, figures
    from hpc_train.reports.measured import Measured
    from hpc_train.tables.nodes import node_frame

    measured = Measured(runs, points, laws, node_frame(study, found.records))
    names = (MAIN,) if asked.main_figure_only else tuple(FIGURES)
    return msgspec.structs.replace(report, figures=figures(study, measured, asked.images, names))


def asked_for(path: Path | None, form: str | None) -> Asked:
    """Return what a file of that name, or that format, needs beside the tables."""
    ending = path.suffix if path is not None else ""
    shown = form or FORMAT_OF.get(ending, "text")
    if shown == "html":
        return Asked(figures=True, images=("inline",), details=True, digests=True)
    if form is None and ending in IMAGES:
        return Asked(figures=True, images=(ending.removeprefix("."),), main_figure_only=True)
    drawn = shown == "markdown" and path is not None
    return Asked(figures=drawn, digests=shown in DIGESTED)


def check_format(form: str | None, path: Path | None) -> None:
    """Refuse an unknown format or ending before any log is read.

    Raises:
        UnknownNameError: no such format.
        StoreError: an ending without a format.
    """
    if form is not None:
        load("formats", form)
    elif path is not None and path.suffix not in (*FORMAT_OF, *IMAGES):
        endings = ", ".join((*FORMAT_OF, *IMAGES))
        raise StoreError(f"{path}: name a format with -f, or an ending of: {endings}")


def render_report(report: Report, form: str) -> str:
    """Write a report in a registered format.

    Raises:
        UnknownNameError: no such format.
    """
    return cast(Callable[[Report], str], load("formats", form))(report)


def write_report(report: Report, path: Path, form: str | None) -> tuple[Path, ...]:
    """Write a report to a file, and its figures beside it; return what was written.

    The format follows the file's ending unless it is given. A picture's ending writes the main
    figure alone.

    Raises:
        StoreError: an ending without a format, or a file that cannot be written.
        UnknownNameError: no such format.
    """
    if path.suffix in IMAGES and form is None:
        return (write_figure(report, path),)
    check_format(form, path)
    form = form or FORMAT_OF[path.suffix]
    figures: tuple[Path, ...] = ()
    if form == "markdown" and report.figures:
        report = named_after(report, path.stem)
        figures = write_figures(report, path)
    write_file(path, render_report(report, form).encode())
    return (path, *figures)
