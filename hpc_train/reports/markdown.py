"""Report -> Markdown with GitHub tables."""

import re

from hpc_train.reports.report import Report, ReportTable, one_line
from hpc_train.reports.text import values_of

# Values of a fact.
MOST = 20
_SPECIAL = re.compile(r"([\\`*|]|(?<=\])\(|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")


def render(report: Report) -> str:
    """Return the report as Markdown; figures are referenced as `NAME.svg` beside it."""
    blocks = [f"# {escaped(report.title)}", _list(report.summary)]
    for table in report.tables:
        if table.rows:
            blocks += [f"## {escaped(table.title)}", _table(table)]
    blocks += [f"![{escaped(figure.caption)}]({figure.name}.svg)" for figure in report.figures]
    lists = (
        ("Checks", report.checks),
        ("Notes", report.notes),
        ("Provenance", tuple(f"{one.name}: {values_of(one, MOST)}" for one in report.provenance)),
    )
    for title, lines in lists:
        if lines:
            blocks += [f"## {title}", _list(lines)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown shows unchanged: no HTML, links, code or table cells from logs."""
    safe = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", safe)


def _list(lines: tuple[str, ...]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


def _table(table: ReportTable) -> str:
    rows = [
        [escaped(column.heading) for column in table.columns],
        ["---:" if column.align == "right" else ":---" for column in table.columns],
        *([escaped(cell) for cell in row] for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
