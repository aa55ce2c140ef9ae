"""`hpctrain report` of tables of every kind gives one and the same report."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from tests.cli.conftest import Hpctrain

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
    """Return the part of a report that does not name its file."""
    return text.partition("\nPoints\n")[2].partition("\nNotes\n")[0]


def test_every_kind_gives_the_same_report(hpctrain: Hpctrain, tables: dict[str, Path]) -> None:
    reports = {}
    for kind, path in tables.items():
        result = hpctrain("report", str(path))
        assert result.returncode == 0, result.stderr
        reports[kind] = numbers(result.stdout)
    assert "512.0" in reports["csv"]
    assert set(reports.values()) == {reports["csv"]}, reports


@pytest.mark.parametrize("kind", ["csv", "jsonl", "csv.gz"])
@pytest.mark.parametrize("piped", [False, True])
def test_a_table_on_stdin(tables: dict[str, Path], kind: str, *, piped: bool) -> None:
    command = [sys.executable, "-m", "hpc_train", "report"]
    of_file = subprocess.run([*command, tables["csv"]], capture_output=True, check=True)
    stdin = [*command, "-", "--parser", "table"]
    if piped:
        raw = tables[kind].read_bytes()
        found = subprocess.run(stdin, capture_output=True, check=False, input=raw)
    else:
        with tables[kind].open("rb") as file:
            found = subprocess.run(stdin, capture_output=True, check=False, stdin=file)
    assert found.returncode == 0, found.stderr
    assert numbers(found.stdout.decode()) == numbers(of_file.stdout.decode())


def test_a_table_on_stdin_without_its_format_is_answered_with_the_option(
    tables: dict[str, Path],
) -> None:
    command = [sys.executable, "-m", "hpc_train", "report", "-"]
    raw = tables["csv"].read_bytes()
    found = subprocess.run(command, capture_output=True, check=False, input=raw)
    assert (found.returncode, found.stdout) == (2, b"")
    assert b"for a table of results on stdin: hpctrain report - --parser table" in found.stderr


def test_a_sheet_is_chosen_by_name(hpctrain: Hpctrain, tables: dict[str, Path]) -> None:
    book = openpyxl.load_workbook(tables["xlsx"])
    book.create_sheet("Notes").append(["measured in May"])
    book.save(tables["xlsx"])
    refused = hpctrain("report", str(tables["xlsx"]))
    assert refused.returncode == 2
    assert "2 sheets have cells: Sheet, Notes" in refused.stderr
    assert hpctrain("report", str(tables["xlsx"]), "--sheet", "Sheet").returncode == 0
    for other in ("csv", "jsonl"):
        refused = hpctrain("report", str(tables[other]), "--sheet", "Sheet")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "not an Excel workbook" in refused.stderr


@pytest.mark.parametrize(("name", "text"), [("t.csv", ""), ("t.jsonl", "{"), ("t.xlsx", "x")])
def test_what_cannot_be_read_is_refused_with_the_file(
    hpctrain: Hpctrain, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    result = hpctrain("report", str(tmp_path / name))
    assert result.returncode == 2
    assert name in result.stderr
    assert "Traceback" not in result.stderr
