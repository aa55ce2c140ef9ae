"""Report -> one self-contained HTML page: no network, nothing beside it."""

from __future__ import annotations

from hpc_train.model.report import Report
from hpc_train.reports.formats.page.whole import page


def render(report: Report) -> str:
    """Return the report as a page with its figures, its runs and what is known of each.

    The page loads nothing and works without JavaScript; the same report gives the same bytes. What
    would make it too large is left out, and the page says so.
    """
    return page(report)
