"""Report -> one self-contained HTML page without network access or other files."""

from __future__ import annotations

from hpc_train.model.report import Report
from hpc_train.reports.formats.page.whole import page


def render(report: Report) -> str:
    """Return the report as a page with its figures, its runs and their details.

    The page loads nothing and works without JavaScript; the same report gives the same bytes. Data
    that would make it too large are left out, with a notice.
    """
    return page(report)
