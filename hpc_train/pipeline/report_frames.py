"""A report -> DataFrames of its points, or of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpc_train.model.report import Report
from hpc_train.reports.formats.csv_table import flat_row, flat_rows
from hpc_train.tables.row_frame import row_frame

if TYPE_CHECKING:
    import pandas as pd


def points_frame(report: Report) -> pd.DataFrame:
    """Return the columns of `hpctrain report -f csv`, with all digits."""
    return row_frame(flat_rows(report.tables[0]) if report.tables else [])


def runs_frame(report: Report) -> pd.DataFrame:
    """Return one row per requested run, also of failed and missing ones."""
    return row_frame([flat_row(row) for row in report.run_rows])
