"""`hpctrain report` of tables of every kind gives one and the same report."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from tests.cases import cases
from tests.cli.conftest import Hpctrain

CASES = {case["case"]: case for case in cases("cli/tables.yaml", "a_table_is_answered")}
ROWS = [
    {"nodes": 1, "gpus_per_node": 4, "global_batch_size": 256, "step_time": 0.512},
    {"nodes": 2, "gpus_per_node": 4, "global_batch_size": 256, "step_time": 0.27},
    {"nodes": 4, "gpus_per_node": 4, "global_batch_size": 256, "step_time": 0.15},
]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    """Return the rows as files of each kind, by extension."""
    frame = pd.DataFrame(ROWS)
    paths = {
        end: tmp_path / f"t.{end}" for end in ("csv", "json", "jsonl", "csv.gz", "parquet", "xlsx")
    }
    frame.to_csv(paths["csv"], index=False)
    frame.to_json(paths["json"], orient="records", indent=1)
    frame.to_json(paths["jsonl"], orient="records", lines=True)
    paths["csv.gz"].write_bytes(gzip.compress(paths["csv"].read_bytes(), mtime=0))
    frame.to_parquet(paths["parquet"])
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (list(frame), *frame.to_numpy().tolist()):
        sheet.append(row)
    book.save(paths["xlsx"])
    return paths


def numbers(text: str) -> str:
    """Return the points of a report, which do not name its file."""
    return text.split("\n\n")[1]


def test_every_kind_gives_the_same_report(hpctrain: Hpctrain, tables: dict[str, Path]) -> None:
    reports = {}
    for kind, path in tables.items():
        result = hpctrain("report", str(path))
        assert result.returncode == 0, result.stderr
        reports[kind] = numbers(result.stdout)
    assert "512.0" in reports["csv"]
    assert set(reports.values()) == {reports["csv"]}, reports


@pytest.mark.parametrize("name", CASES)
def test_a_table_is_answered(hpctrain: Hpctrain, name: str) -> None:
    case = CASES[name]
    for file, text in case["files"].items():
        Path(file).write_text(text)
    done = hpctrain(*case["words"].split())
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == case["code"], said
    assert [part for part in case["parts"] if part not in said] == [], said
    assert [part for part in case.get("absent", ()) if part in said] == [], said


@pytest.mark.process
@pytest.mark.parametrize(("kind", "piped"), [("csv.gz", True), ("jsonl", False)])
def test_a_table_on_stdin(
    hpctrain: Hpctrain, tables: dict[str, Path], kind: str, *, piped: bool
) -> None:
    of_file = hpctrain("report", str(tables["csv"]))
    stdin = [sys.executable, "-m", "hpc_train", "report", "-", "--parser", "table"]
    if piped:
        raw = tables[kind].read_bytes()
        found = subprocess.run(stdin, capture_output=True, check=False, input=raw)
    else:
        with tables[kind].open("rb") as file:
            found = subprocess.run(stdin, capture_output=True, check=False, stdin=file)
    assert found.returncode == 0, found.stderr
    assert numbers(found.stdout.decode()) == numbers(of_file.stdout)


def test_two_sheets_of_one_workbook_are_compared_and_make_one_report(
    hpctrain: Hpctrain, tables: dict[str, Path]
) -> None:
    book = openpyxl.load_workbook(tables["xlsx"])
    faster = book.copy_worksheet(book["Sheet"])
    faster.title = "May"
    place = list(ROWS[0]).index("step_time") + 1
    for number, row in enumerate(ROWS, start=2):
        faster.cell(number, place, row["step_time"] * 0.9)
    book.save(tables["xlsx"])
    words = [f"{tables['xlsx']}:{sheet}" for sheet in ("Sheet", "May")]
    assert "A (t.xlsx:Sheet) against B (t.xlsx:May)" in hpctrain("compare", *words).stdout
    done = hpctrain("report", *words, "-f", "json")
    assert done.returncode == 0, done.stderr
    assert {run["run_id"].split(":")[1] for run in json.loads(done.stdout)["runs"]} == {
        "Sheet", "May",
    }  # fmt: skip
