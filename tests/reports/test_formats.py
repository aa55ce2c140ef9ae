import csv
import io
import json
import re
from types import ModuleType

import pytest

from hpc_train.reports import csv_table, json_report, markdown, text
from hpc_train.reports.page import render
from hpc_train.reports.text import all_columns
from tests.reports.finished import empty, report

FORMATS = (text, markdown, render, csv_table, json_report)


@pytest.mark.parametrize("form", FORMATS)
def test_an_empty_study_can_be_rendered(form: ModuleType) -> None:
    assert isinstance(form.render(empty()), str)


def test_text_fits_100_columns_and_cuts_nothing() -> None:
    shown = text.render(report())
    assert max(map(len, shown.splitlines())) <= 100
    assert "…" not in shown
    assert "\x1b" not in shown
    assert "\\x1b[31m" in shown


def test_numbers_that_do_not_fit_are_left_out_by_name() -> None:
    shown = text.render(report(), width=40).splitlines()
    table = shown[shown.index("Points") : shown.index("Comparison at each size")]
    assert max(map(len, table)) < max(map(len, text.render(all_columns(report()), 40).splitlines()))
    assert "accuracy" in " ".join(table).partition("them): ")[2]


def test_markdown_shows_hostile_words_as_words() -> None:
    shown = markdown.render(report())
    line = next(line for line in shown.splitlines() if "alert" in line)
    assert "<" not in shown
    assert re.findall(r"(?<!\\)\|", line) == ["|"] * 4
    assert "]\\(http" in line
    assert "\\`c\\`" in line


def test_csv_is_tidy() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_table.render(report()))))
    assert len(rows) == 6
    assert float(rows[1]["speedup"]) == pytest.approx(1.94)
    assert float(rows[1]["speedup_low"]) < 1.94 < float(rows[1]["speedup_high"])
    assert rows[0]["speedup_low"] == ""
    assert rows[5]["speedup"] == ""


def test_json_keeps_its_contract() -> None:
    made = json.loads(json_report.render(report()), parse_constant=pytest.fail)
    assert made["schema"] == 1
    assert made["name"] == "resnet"
    first, second, last = made["rows"][0], made["rows"][1], made["rows"][5]
    assert first["speedup"] == {"value": 1.0, "low": None, "high": None}
    assert (second["nodes"], second["gpus_per_node"], second["tasks_per_node"]) == (2, 4, 4)
    assert second["efficiency"]["value"] == pytest.approx(0.97)
    assert second["throughput"]["value"] == pytest.approx(1959.6, abs=0.5)
    assert "speedup" not in last
    assert (last["n_ok"], last["n_submitted"]) == (0, 3)
    assert len(made["runs"]) == 18
    assert made["runs"][15]["problem"].startswith("x | <script>\n")
