"""Provenance in text, Markdown and JSON."""

from __future__ import annotations

import json

import msgspec

from hpc_train.model.report import Fact
from hpc_train.reports.formats import json_report, markdown, text
from hpc_train.reports.formats.text import fact_lines, short_lines
from tests.reports.finished import HOSTILE, empty

FACTS = (
    Fact(name="jobs", values=(("1 … 9 (9 jobs)", 9),)),
    Fact(name="torch", values=(("2.13", 6), ("2.12", 3))),
    Fact(name="container", values=(("none", 9),)),
    Fact(name="logs", values=tuple((f"{n}.log", 1) for n in range(30))),
    Fact(name="not recorded", values=(("driver, mpi", 9),)),
)


def test_values_that_differ_have_their_number_beside_them() -> None:
    lines = fact_lines(FACTS)
    assert lines[:2] == ("jobs: 1 … 9 (9 jobs)", "torch: 2.13 (6x), 2.12 (3x)")
    assert lines[3].endswith("19.log and 10 more")


def test_the_short_block_has_no_line_about_nothing() -> None:
    assert short_lines(FACTS) == (
        "when: jobs 1 … 9 (9 jobs)",
        "versions: torch 2.13 (6x), 2.12 (3x)",
        "not recorded: driver, mpi",
    )
    assert short_lines(()) == ()


def test_each_format_shows_it_safely() -> None:
    hostile = Fact(name="gpu", values=((HOSTILE, 1),))
    report = msgspec.structs.replace(empty(), provenance=(*FACTS, hostile))
    said = json.loads(json_report.render(report))["provenance"]
    assert said["torch"] == [{"value": "2.13", "runs": 6}, {"value": "2.12", "runs": 3}]
    page, shown = markdown.render(report), text.render(report)
    assert "## Provenance" in page
    assert "<script>" not in page
    assert "Provenance\n\n- when:" in shown
    assert "\x1b" not in shown
