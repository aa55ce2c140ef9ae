r"""Report -> LaTeX tables in the style of the package booktabs; needs \usepackage{booktabs}."""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, zip_longest

from msgspec.structs import replace

from hpc_train.reports.report import ABSENT, Report, ReportTable, one_line
from hpc_train.reports.text import laid_out

# Of the class article at 10 pt, in \footnotesize: characters of a line, lines of a page beside the
# caption, and those of the note below a table.
WIDTH, PAGE_LINES, NOTE_LINES = 77, 50, 28
NO_ROOM = "Columns that do not fit (CSV has them): {named}."


def render(report: Report) -> str:
    r"""Return the points as a `table` with caption, label and notes below it; then other tables.

    The caption is the title. What was measured, the baselines, the caveats and the notes are the
    note of the table; the answers are comments, as are further notes. Gates are not results and
    are left out.

    Tables are in \footnotesize and fit into a text of 345 pt: columns that do not fit are left out
    by name, also with `--wide`, and rows beyond a page are counted. Text is escaped, so that names
    and log lines are shown unchanged; `'` and `"` need the package textcomp and T1 fonts.
    """
    label = re.sub(r"[^A-Za-z0-9-]+", "-", report.name or "scaling").strip("-")
    answers = report.answer
    notes = [*(line for line in report.summary if line not in answers), *report.notes]
    fitting = sum(lines <= NOTE_LINES for lines in accumulate(map(_note_lines, notes)))
    shown = [table for table in report.tables if table.rows and table.key != "gates"]
    blocks = [
        _float(table, table.title, f"{label}-{table.key}", ())
        if i
        else _float(table, f"{report.title}.", label, notes[:fitting])
        for i, table in enumerate(shown)
    ]
    comments = [*answers, *notes[fitting if shown else 0 :]]
    return "\n".join([*blocks, *(f"% {one_line(line)}" for line in comments)]) + "\n"


def _float(table: ReportTable, caption: str, label: str, notes: Sequence[str]) -> str:
    """Return the rows of a table that fit on a page."""
    table = replace(table, rows=tuple(tuple(map(_in_fonts, row)) for row in table.rows))
    layout = laid_out(table, WIDTH, 1)
    if sum(layout.widths) + len(layout.widths) - 1 > WIDTH:
        # Whatever does not fit is left out, from the right.
        last = len(table.columns) + max(one.drop for one in table.columns)
        columns = (replace(one, drop=one.drop or last - i) for i, one in enumerate(table.columns))
        layout = laid_out(replace(table, columns=tuple(columns)), WIDTH, 1)
    if layout.left_out:
        named = ", ".join(dict.fromkeys(layout.left_out))
        notes = [*notes, NO_ROOM.format(named=named)]
    deep = accumulate(max(map(len, row)) for row in layout.rows)
    head, room = layout.heading_lines, PAGE_LINES - sum(map(_note_lines, notes))
    rows = layout.rows[: sum(lines <= room - len(head) for lines in deep)]
    if more := len(layout.rows) - len(rows):
        notes = [*notes, f"{more} more rows are in CSV and JSON."]
    form = "".join("r" if column.align == "right" else "l" for column in layout.columns)
    lines = [line for row in rows for line in zip_longest(*row, fillvalue="")]
    note = [
        r"  \par\smallskip",
        r"  \begin{minipage}{\linewidth}",
        r"    \raggedright",
        *(rf"    {escaped(line)}\par" for line in notes),
        r"  \end{minipage}",
    ]
    return "\n".join((
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(caption)}}}",
        rf"  \label{{tab:{label}}}",
        r"  \footnotesize",
        r"  \setlength{\tabcolsep}{3pt}",
        rf"  \begin{{tabular}}{{@{{}}{form}@{{}}}}",
        r"    \toprule",
        *(f"    {_row(row)}" for row in head),
        r"    \midrule",
        *(f"    {_row(row)}" for row in lines),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(note if notes else ()),
        r"\end{table}",
    ))  # fmt: skip


def _note_lines(note: str) -> int:
    return 1 + len(note) // WIDTH


def _row(texts: Iterable[str]) -> str:
    row = " & ".join("--" if text == ABSENT else escaped(text) for text in texts)
    # After the `\\` of the row above, these would be parsed as its options.
    return f"{'{}' if row.startswith(('[', '*')) else ''}{row} \\\\"


_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}", "`": r"\textasciigrave{}", "≥": r"$\geq$", "≤": r"$\leq$",
    "→": r"$\rightarrow$", "←": r"$\leftarrow$", "≈": r"$\approx$", "≠": r"$\neq$",
    "∞": r"$\infty$", "\u2212": r"$-$", "\u03bc": r"\textmu{}", "\u00b5": r"\textmu{}",
}  # fmt: skip
# Beyond ASCII, T1 fonts have these: Latin letters, and signs of typography.
_IN_FONTS = r"\u00a1-\u00ac\u00ae-\u017e\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030\u20ac"
_KNOWN = re.escape("".join(_ESCAPES))
_SPECIAL = re.compile(f"[{_KNOWN}]|--")
_LACKING = re.compile(rf"[^{_KNOWN}\x20-\x7e{_IN_FONTS}]")


def escaped(text: str) -> str:
    """Return text that LaTeX prints unchanged, including two hyphens.

    A character that the fonts of pdfLaTeX lack, such as a Chinese one, is written as `U+8282`.
    """
    return _SPECIAL.sub(lambda found: _ESCAPES.get(found[0], "{-}{-}"), _in_fonts(text))


def _in_fonts(text: str) -> str:
    return _LACKING.sub(lambda found: f"U+{ord(found[0]):04X}", one_line(text))
