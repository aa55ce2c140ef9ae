"""A table that says of its rows whether they are strong or weak scaling, rightly or wrongly."""

import json
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import LogParseError
from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.write_report import render_report

HEAD = "nodes,gpus_per_node,global_batch_size,samples_per_second"
STRONG = ("1,4,256,1000,{}", "2,4,256,1900,{}")
WEAK = ("1,4,256,1000,{}", "2,4,512,1900,{}")


def report(folder: Path, column: str, *rows: str) -> Any:
    path = folder / "table.csv"
    path.write_text("\n".join([f"{HEAD},{column}", *rows]) + "\n")
    found = report_inputs([str(path)], Search(root=folder / "none"))
    return json.loads(render_report(build_report(found), "json"))


@pytest.mark.parametrize("column", ["scaling", "Scaling", "regime", "scaling type"])
@pytest.mark.parametrize("word", ["strong", "Strong", "strong scaling"])
def test_what_all_rows_say_is_declared(tmp_path: Path, column: str, word: str) -> None:
    said = report(tmp_path, column, *(row.format(word) for row in STRONG))
    assert (said["conditions"]["declared"], said["conditions"]["regime"]) == ("strong", "strong")
    assert [row["series"] for row in said["rows"]] == ["all", "all"]


def test_a_label_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        LogParseError, match=r"table.csv:3: scaling: 'storng' is not a scaling"
    ) as caught:
        report(tmp_path, "scaling", STRONG[0].format("strong"), STRONG[1].format("storng"))
    assert "did you mean 'strong'?; allowed: strong, weak" in caught.value.message
