"""A study's own runs in its report: how long they took, which are left out, which still run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.json_files import read_json, to_json, write_file
from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.log_selection import Search
from hpc_train.model.run import JobStatus
from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import ReportInputs, report_inputs
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import submit
from hpc_train.pipeline.write_report import render_report
from tests.pipeline.waiting import finished

Prepare = Callable[..., Prepared]
PRINTS = "import json; print('@hpct', json.dumps(dict(samples_per_second=10, global_batch_size=8)))"
ROOT = Search(root=Path("results"))


def runs(found: ReportInputs) -> dict[str, ExpectedRun]:
    return {run.run_id: run for run in found.study.runs}


@pytest.mark.process
def test_wall_time_and_requeues_come_from_the_job_itself(desk: Path, job: Prepare) -> None:
    home = submit(job(f"import time; time.sleep(0.5); {PRINTS}"), Path("results"), []).home
    (run,) = finished(home).values()
    status = read_json(run.folder.status, JobStatus)
    again = {**json.loads(to_json(status)), "restart_count": 2}
    write_file(run.folder.status, json.dumps(again).encode())
    (expected,) = report_inputs([home.name], ROOT).study.runs
    assert (expected.restarts, expected.state) == (2, "COMPLETED")
    assert expected.wall_s is not None
    assert status.ended is not None
    assert expected.wall_s == pytest.approx(status.ended - status.started)
    assert expected.wall_s >= 0.5


@pytest.mark.process
def test_runs_of_a_study_are_left_out_by_its_file_and_by_option(desk: Path, study: Prepare) -> None:
    home = submit(study(PRINTS), Path("results"), []).home
    one, two, *_ = sorted(finished(home))
    (home / "exclude.yaml").write_text(f"{one}: node 3 was down\n")
    search = Search(root=Path("results"), excluded={two: "an old driver"})
    found = report_inputs([home.name], search)
    assert (runs(found)[one].state, runs(found)[one].problem) == ("EXCLUDED", "node 3 was down")
    assert (runs(found)[two].state, runs(found)[two].problem) == ("EXCLUDED", "an old driver")
    both = Search(root=Path("results"), excluded={one: "it was mine"})
    assert runs(report_inputs([home.name], both))[one].problem == "it was mine", "the option wins"
    rows = build_report(found).tables[0].records
    assert sum(row["n_submitted"] for row in rows) == 4
    assert sum(row["n_ok"] for row in rows) == 2
    assert not build_report(found).partial


@pytest.mark.process
def test_a_study_that_still_runs_makes_a_partial_report(desk: Path, study: Prepare) -> None:
    home = submit(study("import time; time.sleep(90)"), Path("results"), []).home
    built = build_report(report_inputs([home.name], ROOT))
    waiting = [run for run in runs_below(home) if run.state.active]
    assert len(waiting) == 4
    assert built.title.endswith("(partial: 4 of 4 runs not finished)")
    assert json.loads(render_report(built, "json"))["partial"] is True


@pytest.mark.process
def test_sizes_of_own_runs_are_known(desk: Path, job: Prepare) -> None:
    home = submit(job(PRINTS), Path("results"), []).home
    finished(home)
    with pytest.raises(LogParseError, match="the sizes of hpctrain's runs are known"):
        report_inputs([home.name], Search(root=Path("results"), points=Path("points.yaml")))
