from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from hpc_train.model.report import Cell, Column, ReportTable
from hpc_train.reports.formats import latex
from tests.reports.finished import report


def test_it_is_a_booktabs_table() -> None:
    lines = latex.render(report()).splitlines()
    rules = [line.strip() for line in lines if "rule" in line]
    assert rules == [r"\toprule", r"\midrule", r"\bottomrule"] * 3
    layouts = re.findall(r"\\begin\{tabular\}\{@\{\}([lr]+)@\{\}\}", "\n".join(lines))
    rows = [line for line in lines if line.endswith(r" \\")]
    cells = {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows}
    assert cells == {len(layout) for layout in layouts}


def test_hostile_words_are_shown_as_words() -> None:
    shown = latex.render(report())
    line = next(line for line in shown.splitlines() if "alert" in line)
    assert r"\textbar{} \textless{}script\textgreater{}" in line
    assert r"\textbackslash{}x1b" in line
    assert r"\textasciigrave{}c\textasciigrave{}" in line


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("50 %_$&#{}", r"50 \%\_\$\&\#\{\}"),
        ("a~b^c", r"a\textasciitilde{}b\textasciicircum{}c"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("--wide", "{-}{-}wide"),
    ],
)
def test_what_latex_obeys_is_escaped(text: str, written: str) -> None:
    assert latex.escaped(text) == written


def test_the_caption_is_short_and_the_notes_are_below_the_table() -> None:
    made = msgspec.structs.replace(report(), notes=report().notes[:5])
    first, *_ = latex.render(made).split(r"\end{table}")
    (caption,) = re.findall(r"\\caption\{(.*)\}", first)
    assert caption == latex.escaped(f"{made.title}.")
    note = first.partition(r"\end{tabular}")[2]
    conditions = [line for line in made.summary if line.startswith(latex.CONDITIONS)]
    shown = [*conditions, *made.notes][: latex.MOST_NOTES]
    assert note.count(r"\par" "\n") == len(shown) > 8
    for line in shown:
        assert latex.escaped(line) in note


def test_further_notes_are_comments_of_one_line() -> None:
    many = msgspec.structs.replace(report(), notes=tuple(f"note\n{i}" for i in range(30)))
    shown = latex.render(many)
    after = shown.split(r"\end{table}")[-1].strip().splitlines()
    assert all(line.startswith("% ") for line in after)
    assert [f"note {i}" in shown for i in range(30)] == [True] * 30


DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs}
\begin{document}
TABLES
\end{document}
"""


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="no pdflatex: apt install texlive-latex-recommended"
)
def test_latex_accepts_the_tables(tmp_path: Path) -> None:
    (tmp_path / "r.tex").write_text(DOCUMENT.replace("TABLES", latex.render(report())))
    # A draft needs no outlines of fonts, which are in further packages.
    words = ["pdflatex", "-draftmode", "-halt-on-error", "-interaction=nonstopmode", "r.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Output written" in done.stdout or "draftmode" in done.stdout


def test_a_row_does_not_begin_with_an_option_of_the_row_above() -> None:
    texts = (("[1, 2]", "*"), ("*", "1"), ("1", "2"))
    rows = tuple(tuple(Cell(text=text) for text in row) for row in texts)
    columns = tuple(Column(key=key, heading=key) for key in "ab")
    table = ReportTable(title="t", columns=columns, rows=rows)
    shown = latex.render(msgspec.structs.replace(report(), tables=(table,)))
    assert r"    {}[1, 2] & * \\" in shown
    assert r"    {}* & 1 \\" in shown
    assert r"    1 & 2 \\" in shown
