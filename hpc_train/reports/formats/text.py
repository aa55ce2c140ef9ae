"""Report -> text for a terminal, without colours."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hpc_train.model.report import Column, Report, ReportTable
from hpc_train.reports.provenance_lines import short_lines
from hpc_train.reports.value_format import one_line

WIDTH = 100
# Longer words of a left column (paths, URLs) are wrapped.
LONGEST = 40
_RULE = "─"


def render(report: Report, width: int = WIDTH) -> str:
    """Return the report as text: tables of `width` columns, prose of at most 100.

    Nothing is truncated: if numbers need more space, the table is wider.
    """
    prose = min(width, WIDTH)
    parts = [_wrapped(report.title, prose), "=" * min(prose, len(one_line(report.title))), ""]
    parts += [_wrapped(line, prose) for line in report.summary]
    for table in report.tables:
        if table.rows:
            parts += ["", one_line(table.title), "", _table(table, width)]
    parts += _section("Checks", report.checks, prose) + _section("Notes", report.notes, prose)
    parts += _section("Provenance", short_lines(report.provenance), prose)
    return "\n".join(parts) + "\n"


def _section(title: str, lines: tuple[str, ...], width: int) -> list[str]:
    return ["", title, "", *(_wrapped(f"- {line}", width) for line in lines)] if lines else []


def _wrapped(line: str, width: int) -> str:
    # A no-break space keeps a number and its % together; `one_line` removes all others.
    tied = one_line(line).replace(" %", "\u00a0%")
    filled = textwrap.fill(tied, width, subsequent_indent="  ", break_on_hyphens=False)
    return filled.replace("\u00a0", " ")


def _table(table: ReportTable, width: int) -> str:
    rows = [[one_line(cell.text) for cell in row] for row in table.rows]
    # Two blanks between columns, or one.
    fitting = aligned(table.columns, rows, 2, width) or aligned(table.columns, rows, 1, width)
    return fitting or folded(table, width)


def folded(table: ReportTable, width: int) -> str:
    """Return a table as text; long cells are wrapped."""
    console, drawn = _console(10_000), _rich_table(table, gap=1)
    if Measurement.get(console, console.options, drawn).maximum > width:
        drawn = _rich_table(table, gap=0)
    needed = Measurement.get(console, console.options, drawn).minimum
    out = _console(max(width, needed))
    out.print(drawn)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))


def _console(width: int) -> Console:
    return Console(
        file=io.StringIO(), width=width, color_system=None, legacy_windows=False, _environ={}
    )


def _rich_table(table: ReportTable, gap: int) -> Table:
    drawn = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        highlight=False,
    )
    for i, column in enumerate(table.columns):
        right = column.align == "right"
        cells = [one_line(row[i].text) for row in table.rows]
        # Without it rich breaks words and numbers before it narrows another column.
        words = [word for cell in cells for word in cell.split()]
        drawn.add_column(
            Text(column.heading),
            justify=column.align,
            no_wrap=right,
            min_width=(
                max(map(len, (*cells, *column.heading.split("\n"))), default=0)
                if right
                else min(max(map(len, words), default=0), LONGEST)
            ),
            overflow="fold",
            vertical="top",
        )
    for row in table.rows:
        drawn.add_row(*(Text(one_line(cell.text)) for cell in row))
    return drawn


def aligned(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], gap: int, width: int
) -> str | None:
    """Return the table, columns `gap` apart; None if it is wider than `width`.

    Also None if characters are not one column wide each: rich knows their widths.
    """
    heads = [column.heading.split("\n") for column in columns]
    widths = [
        max(map(len, [*heads[place], *(row[place] for row in rows)]))
        for place in range(len(columns))
    ]
    total = sum(widths) + gap * (len(columns) - 1)
    if total > width or not _one_place_each(heads) or not _one_place_each(rows):
        return None
    line = (" " * gap).join(
        f"{{:{'>' if column.align == 'right' else '<'}{size}}}"
        for column, size in zip(columns, widths, strict=True)
    )
    deep = max(map(len, heads), default=0)
    # A heading with fewer lines is aligned with the bottom.
    above = zip(*([""] * (deep - len(head)) + head for head in heads), strict=True)
    lines = [*(line.format(*head) for head in above), _RULE * total]
    return "\n".join(text.rstrip() for text in [*lines, *(line.format(*row) for row in rows)])


def _one_place_each(rows: Sequence[Sequence[str]]) -> bool:
    texts = map("".join, rows)
    return all(text.isascii() or cell_len(text) == len(text) for text in texts)
