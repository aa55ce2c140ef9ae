"""What reports and comparisons have in common: texts, the table, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpc_train.api.arguments import AnyPath, path_of, text_of
from hpc_train.api.blocks import Block, Rows, Sentences, Title
from hpc_train.api.display import Displayed, ShownText
from hpc_train.reports.write_report import check_format, render_report, write_report

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.reports.report import Report, ReportTable


class WrittenReport(Displayed):
    """Texts, table and files of a report or a comparison."""

    def __init__(self, report: Report) -> None:
        self._report = report

    @property
    def title(self) -> str:
        """The title."""
        return self._report.title

    @property
    def summary(self) -> str:
        """The first lines of the report: the results with their conditions."""
        return ShownText("\n".join(self._report.summary))

    @property
    def table(self) -> pd.DataFrame:
        """One row per point, with the columns of `hpctrain report -f csv` and all digits.

        A ratio has three columns: `speedup`, `speedup_low`, `speedup_high`. Times in seconds; units
        and meaning of each column are in docs/reading-a-report.md.
        """
        from hpc_train.reports.build import points_frame

        return points_frame(self._report)

    @property
    def text(self) -> str:
        """The whole report as text, 100 characters wide."""
        return ShownText(render_report(self._report, "text"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats and explanations, one sentence each."""
        return self._report.notes

    @property
    def checks(self) -> tuple[str, ...]:
        """A sentence for each gate or check that is not met."""
        return self._report.checks

    @property
    def partial(self) -> bool:
        """Whether some requested runs have no result."""
        return self._report.partial

    def save(self, path: AnyPath, format: str | None = None) -> tuple[Path, ...]:
        """Write the report to a file, and return the paths that were written.

        The format follows the extension (.html, .md with figures beside it, .csv, .json, .tex,
        .txt, .svg, .png, .pdf, .parquet) unless `format` is given; a name without extension is a
        folder for all formats.

        Raises:
            ArgumentError: an argument of another type.
            StoreError: an unknown extension, or a file that cannot be written.
            UnknownNameError: no such format.
        """
        target = path_of(path, "path")
        form = None if format is None else text_of(format, "format")
        check_format(form, target)
        return write_report(self._built_for(target, form), target, form)

    def _built_for(self, path: Path, form: str | None) -> Report:
        return self._report

    def _blocks(self) -> Sequence[Block]:
        """Return everything except the table of runs and the provenance."""
        report = self._report
        return [
            Title(report.title),
            Sentences(report.summary),
            *(_rows(table) for table in report.tables if table.key != "runs"),
            Sentences(report.checks, "Checks"),
            Sentences(report.notes, "Notes"),
        ]

    def __repr__(self) -> str:
        """Return the class and the title."""
        return f"<{type(self).__name__} {self.title!r}>"


def _rows(table: ReportTable) -> Rows:
    right = frozenset(i for i, column in enumerate(table.columns) if column.align == "right")
    heads = [column.heading for column in table.columns]
    return Rows(heads, [[cell.text for cell in row] for row in table.rows], table.title, right)
