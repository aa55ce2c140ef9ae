from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from hpc_train.errors import StoreError
from hpc_train.model.log_selection import Search
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import report_inputs
from hpc_train.pipeline.write_report import check_format, default_options, write_report

TABLE = """nodes,gpus_per_node,global_batch_size,samples_per_second
1,4,256,1000
1,4,256,1010
2,4,256,1900
2,4,256,1950
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("report")
    table, out = home / "mine.csv", home / "deep" / "out"
    table.write_text(TABLE, encoding="utf-8")
    found = report_inputs([str(table)], Search(root=home / "none"))
    written = write_report(build_report(found, default_options(out, None)), out, None)
    assert sorted(written) == sorted(out.iterdir())
    return out


def test_a_folder_gets_every_form(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    texts = {"report.html", "report.md", "report.tex", "report.json", "points.csv", "tidy.csv"}
    assert texts | {"tidy.parquet", "scaling.svg", "scaling.png", "scaling.pdf"} <= names
    assert "scaling.svg" in (folder / "report.md").read_text()
    assert "<svg" in (folder / "report.html").read_text()
    rows = json.loads((folder / "report.json").read_text())["rows"]
    with (folder / "points.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    # Nine digits in CSV, all of them in JSON.
    assert float(second["speedup"]) == pytest.approx(rows[1]["speedup"]["value"], rel=1e-8)
    assert float(second["speedup"]) > float(first["speedup"]) == 1


def test_both_tidy_files_say_the_same(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    parquet = pd.read_parquet(folder / "tidy.parquet")
    text = pd.read_csv(folder / "tidy.csv")
    assert list(parquet.columns) == list(text.columns)
    assert parquet["value"].tolist() == text["value"].tolist()
    assert set(parquet["metric"]) >= {"samples_per_second", "global_batch_size"}


def test_each_picture_has_its_numbers_beside_it(folder: Path) -> None:
    pictures = {path.stem for path in folder.glob("*.svg")}
    assert pictures
    assert {path.stem for path in folder.glob("*.csv")} >= pictures


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file.md").write_text("")
    out = tmp_path / "file.md" / "out"
    found = tmp_path / "mine.csv"
    found.write_text(TABLE, encoding="utf-8")
    report = build_report(report_inputs([str(found)], Search(root=tmp_path / "none")))
    with pytest.raises(StoreError, match="out: cannot be created: Not a directory"):
        write_report(report, out, None)


def test_an_ending_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="a name without an extension is a folder"):
        check_format(None, tmp_path / "r.foo")
