"""A copied run folder is no second repetition, and a report says which folder was left out."""

import shutil
from pathlib import Path

import msgspec
import pytest

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import ReportInputs, report_inputs
from hpc_train.reports.write_report import render_report
from hpc_train.runs.json_files import read_json, to_json
from hpc_train.runs.run import Submission
from tests.submissions.runs_of import written

ROOT = Search(root=Path("results"))
LOG = '@hpct {"samples_per_second": 10, "global_batch_size": 8}\n'
FIRST, SECOND = "j-n1-r1", "j-n1-r2"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a job with one run."""
    monkeypatch.chdir(tmp_path)
    written(Path("results/j"), FIRST, LOG)
    return Path("results/j")


def counted(found: ReportInputs) -> int:
    return sum(row["n_ok"] for row in build_report(found).tables[0].records)


@pytest.mark.parametrize("name", [SECOND, "copy", "a-copy", f"{FIRST}.old"])
def test_a_copy_is_left_out_and_named(home: Path, name: str) -> None:
    shutil.copytree(home / FIRST, home / name)
    found = report_inputs(["j"], ROOT)
    assert [run.run_id for run in found.study.runs] == [FIRST]
    assert counted(found) == 1
    said = f"{name} is left out: a copy of the folder {FIRST} (run {FIRST}, job 1)"
    assert said in " ".join(render_report(build_report(found), "text").split())


def test_a_copy_that_was_submitted_again_is_another_job(home: Path) -> None:
    shutil.copytree(home / FIRST, home / SECOND)
    path = home / SECOND / "submission.json"
    again = msgspec.structs.replace(read_json(path, Submission), native_id="2")
    path.write_bytes(to_json(again))
    assert counted(report_inputs(["j"], ROOT)) == 2
