import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.reports import latex
from hpc_train.reports.latex import escaped
from hpc_train.reports.report import Column, Report, ReportTable
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.reports.tables import with_laws
from hpc_train.reports.text import all_columns
from hpc_train.scaling.comparison import fastest_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.reports.finished import report
from tests.reports.measured import measured


def test_hostile_words_are_shown_as_words() -> None:
    shown = latex.render(report())
    line = next(line for line in shown.splitlines() if "alert" in line)
    assert r"\textbar{} \textless{}script\textgreater{}" in line
    assert r"\textbackslash{}x1b" in shown
    assert r"\textasciigrave{}c\textasciigrave{}" in shown


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("50 %_$&#{}", r"50 \%\_\$\&\#\{\}"),
        ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("--wide", "{-}{-}wide"),
        ("5 µs ≥ 3 → é", r"5 \textmu{}s $\geq$ 3 $\rightarrow$ é"),
        ("\u7bc0 \U0001f600", "U+7BC0 U+1F600"),
    ],
)
def test_what_latex_obeys_is_escaped(text: str, written: str) -> None:
    assert escaped(text) == written


DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\begin{document}
TABLES
\end{document}
"""
NAMES = (
    "50%_&#{}~^\\input{x}",
    "a ≥ b → c 'µs'",
    '\u7bc0\u70b9 "q"',
    *(f"strategy_{i}" for i in range(7)),
)


def ten_series(*, wide: bool = False) -> Report:
    """Return a report of ten series of seven sizes; wide, with all columns of a study."""
    asked, made = measured(series=NAMES, failed=())
    points = made.points if wide else speedup_frame(made.runs, asked)
    fastest = fastest_frame(made.runs, points, asked)
    report = scaling_report(asked, made.runs, points, fastest, wide=wide)
    report = with_laws(report, made.laws)
    return all_columns(report) if wide else report


REPORTS: dict[str, Callable[[], Report]] = {
    "hostile words": report,
    "a failure of long words": lambda: report("no_blank_in_this_word" * 20),
    "ten series": ten_series,
    "ten series, wide": lambda: ten_series(wide=True),
    "notes that fill a page": lambda: msgspec.structs.replace(report(), notes=("word " * 80,) * 30),
}


@pytest.mark.latex
@pytest.mark.parametrize("name", REPORTS)
def test_latex_accepts_the_tables_and_they_fit_the_page(tmp_path: Path, name: str) -> None:
    (tmp_path / "r.tex").write_text(DOCUMENT.replace("TABLES", latex.render(REPORTS[name]())))
    # A draft needs no outlines of fonts, which are in further packages.
    words = ["pdflatex", "-draftmode", "-halt-on-error", "-interaction=nonstopmode", "r.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=240)
    log = done.stdout.decode(errors="replace")
    assert done.returncode == 0, log[-3000:]
    wide = [float(size) for size in re.findall(r"Overfull \\hbox \((\d+\.\d+)pt", log)]
    assert max(wide, default=0) < 3, wide
    assert "too large for page" not in log


def test_a_row_does_not_begin_with_an_option_of_the_row_above() -> None:
    texts = (("[1, 2]", "*"), ("*", "1"), ("1", "2"))
    columns = tuple(Column(key=key, heading=key) for key in "ab")
    table = ReportTable(title="t", columns=columns, rows=texts)
    shown = latex.render(msgspec.structs.replace(report(), tables=(table,)))
    assert r"    {}[1, 2] & * \\" in shown
    assert r"    {}* & 1 \\" in shown
    assert r"    1 & 2 \\" in shown
