"""A report on stdout, or in a file whose path is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpc_train.base.plain_text import plain, plain_json

if TYPE_CHECKING:
    from hpc_train.reports.report import Report


def show_report(
    report: Report, form: str | None, output: Path | None, *, first_screen: bool = False
) -> None:
    """Print a report in a format (default: text), or write it and print the paths.

    `first_screen` leaves notes, provenance and further tables out of text on stdout.
    """
    from hpc_train.reports.write_report import render_report, write_report

    if output is None:
        safe = plain_json if form == "json" else plain
        shown = render_report(report, form or "text", columns(), first_screen=first_screen)
        click.echo(safe(shown), nl=False)
        return
    for path in write_report(report, output, form):
        click.echo(path)


# Of a report if stdout is no terminal and $COLUMNS is not set; narrower is not readable.
WIDTH, LEAST = 100, 40


def columns() -> int:
    """Return the width of a report: $COLUMNS, else that of the terminal, else 100."""
    # `hpctrain --help` does not need it.
    import shutil

    return max(LEAST, shutil.get_terminal_size((WIDTH, 24)).columns)
