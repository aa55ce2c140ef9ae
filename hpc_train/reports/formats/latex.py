r"""Report -> a LaTeX table in the style of the package booktabs; needs \usepackage{booktabs}."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hpc_train.model.report import Report, ReportTable
from hpc_train.reports.value_format import ABSENT, one_line

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}",
}  # fmt: skip
_SPECIAL = re.compile("[" + re.escape("".join(_ESCAPES)) + "]|--")
# Paragraphs of a note; a table must fit on a page.
MOST_NOTES = 16
CONDITIONS = ("Measured: ", "Baseline", "Caveats: ")
_BLANK = re.compile(r"\s+")


def render(report: Report) -> str:
    """Return the points as a `table` with caption, label and notes below it; then the other tables.

    The caption is the title. What was measured, the baselines, the caveats and the notes are the
    note of the table; the answers are comments, as are very many notes. Gates are not results and
    are left out.

    Text is escaped, so that names and log lines are shown unchanged. `'` and `"` need the
    package textcomp and T1 fonts.
    """
    label = re.sub(r"[^A-Za-z0-9-]+", "-", report.name or "scaling").strip("-")
    conditions = [line for line in report.summary if line.startswith(CONDITIONS)]
    answers = [line for line in report.summary if line not in conditions]
    every = [*conditions, *report.notes]
    shown = [table for table in report.tables if table.rows and table.key != "gates"]
    blocks = [
        _float(
            table,
            table.title if i else f"{report.title}.",
            f"tab:{label}{f'-{table.key}' if i else ''}",
            () if i else every[:MOST_NOTES],
        )
        for i, table in enumerate(shown)
    ]
    comments = [*answers, *every[MOST_NOTES if blocks else 0 :]]
    return "\n".join([*blocks, *_comments(comments)]) + "\n"


def escaped(text: str) -> str:
    """Return text that LaTeX prints unchanged, including two hyphens."""
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], "{-}{-}"), one_line(text))


def _float(table: ReportTable, caption: str, label: str, notes: Sequence[str]) -> str:
    layout = "".join("r" if column.align == "right" else "l" for column in table.columns)
    heads = [column.heading.split("\n") for column in table.columns]
    depth = max(map(len, heads))
    head_rows = [[head[i] if i < len(head) else "" for head in heads] for i in range(depth)]
    return "\n".join((
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(caption)}}}",
        rf"  \label{{{label}}}",
        rf"  \begin{{tabular}}{{@{{}}{layout}@{{}}}}",
        r"    \toprule",
        *(f"    {_row(row)}" for row in head_rows),
        r"    \midrule",
        *(f"    {_row(cell.text for cell in row)}" for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        *_note(notes),
        r"\end{table}",
    ))  # fmt: skip


def _note(lines: Sequence[str]) -> list[str]:
    """Return the note below a table: a paragraph for each line, in small type."""
    if not lines:
        return []
    return [
        r"  \par\smallskip",
        r"  \begin{minipage}{\linewidth}",
        r"    \footnotesize\raggedright",
        *(rf"    {escaped(line)}\par" for line in lines),
        r"  \end{minipage}",
    ]


def _row(texts: Iterable[str]) -> str:
    row = " & ".join("--" if text == ABSENT else escaped(text) for text in texts)
    # After the `\\` of the row above, these would be parsed as its options.
    return f"{'{}' if row.startswith(('[', '*')) else ''}{row} \\\\"


def _comments(lines: Iterable[str]) -> list[str]:
    """Return the notes as comments for the author of the caption."""
    return [f"% {_BLANK.sub(' ', one_line(line))}" for line in lines]
