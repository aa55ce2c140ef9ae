"""Submitting on this machine: real scripts, real processes, every way they can end."""

import json
import os
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError, StoreError
from hpc_train.diagnosis.diagnose_runs import problem_of
from hpc_train.hosts.local import processes_of
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.override import parse_setting
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import ReportInputs, report_inputs
from hpc_train.reports.write_report import render_report
from hpc_train.runs.expected_runs import ExpectedRun
from hpc_train.runs.json_files import read_json, to_json, write_file
from hpc_train.runs.run import JobState, JobStatus
from hpc_train.runs.run_queue import FOLDER, is_held
from hpc_train.runs.run_states import cancel, runs_below
from hpc_train.scripts.prepare import Prepared, Request, prepare
from hpc_train.submissions.submit import submit
from tests.submissions.waiting import finished, wait_for

Prepare = Callable[..., Prepared]
WAIT = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
COUNT = "open('count', 'a').write('x'); print('ran')"


@pytest.mark.process
def test_a_job_runs_in_the_background_to_its_end(desk: Path, job: Prepare) -> None:
    done = submit(job(f"{WAIT}print('here')"), Path("results"), ["x"])
    (run,) = runs_below(done.home)
    assert run.state in (JobState.PENDING, JobState.RUNNING)
    (desk / "go").touch()
    (run,) = finished(done.home).values()
    assert run.state is JobState.COMPLETED
    assert (run.folder.logs / "rank-0.out").read_text() == "here\n"
    assert run.manifest is not None
    assert run.manifest.provenance["argv"] == ["x"]


@pytest.mark.process
def test_a_failed_rank_is_named_and_the_study_goes_on(desk: Path, study: Prepare) -> None:
    code = "import os, sys; print('bad luck'); sys.exit(3 if os.environ['X'] == '1' else 0)"
    runs = finished(submit(study(code), Path("results"), []).home)
    states = sorted(run.state.value for run in runs.values())
    assert states == ["COMPLETED", "COMPLETED", "FAILED", "FAILED"]
    (problem,) = {run.problem for run in runs.values() if run.state is JobState.FAILED}
    assert problem.startswith("rank 0 on ")
    assert problem.endswith(": exit code 3")


@pytest.mark.process
def test_runs_of_a_study_never_overlap(desk: Path, study: Prepare) -> None:
    submit(study("import time; time.sleep(0.3)", "name=a"), Path("results"), [])
    submit(study("import time; time.sleep(0.3)", "name=b"), Path("results"), [])
    runs = [*finished(desk / "results/a").values(), *finished(desk / "results/b").values()]
    spans = sorted((r.status.started, r.status.ended or 0) for r in runs if r.status is not None)
    assert len(spans) == 8
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


@pytest.mark.process
def test_submitting_again_runs_only_what_is_missing(desk: Path, study: Prepare) -> None:
    home = submit(study(COUNT), Path("results"), []).home
    finished(home)
    again = submit(study(COUNT), Path("results"), [])
    assert (len(again.new), len(again.kept)) == (0, 4)
    more = submit(study(COUNT, "repetitions=3"), Path("results"), [])
    assert (len(more.new), len(more.kept)) == (2, 4)
    finished(home)
    assert (desk / "count").read_text() == "x" * 6


@pytest.mark.process
def test_failed_runs_stay_unless_they_are_asked_for(desk: Path, study: Prepare) -> None:
    home = submit(study("raise SystemExit(1)"), Path("results"), []).home
    finished(home)
    assert submit(study("raise SystemExit(1)"), Path("results"), []).new == ()
    again = submit(study("raise SystemExit(1)"), Path("results"), [], rerun_failed=True)
    assert all(run.run_id.endswith(".2") for run in again.new)
    assert len(again.new) == 4
    assert len(finished(home)) == 8, "the first attempts are still there"


@pytest.mark.process
def test_the_order_is_random_and_recorded_by_its_seed(desk: Path, study: Prepare) -> None:
    orders = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        settings = (f"name={name}", f"seed={seed}", "repetitions=6")
        done = submit(study("pass", *settings), Path("results"), [])
        orders.append([run.run_id.split("-", 1)[0] + run.run_id[-3:] for run in done.new])
        finished(done.home)
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0] != sorted(orders[0])


@pytest.mark.process
def test_a_time_limit_ends_a_run(desk: Path, job: Prepare) -> None:
    home = submit(job("import time; time.sleep(600)", "time=1s"), Path("results"), []).home
    (run,) = finished(home).values()
    assert run.state is JobState.TIMEOUT
    assert run.problem == "the time limit of 1 s was reached"
    assert problem_of(run) == run.problem, "the log has nothing to add"
    wait_for(lambda: processes_of(run.folder) == ())


@pytest.mark.process
def test_cancel_ends_what_runs_and_what_waits(desk: Path, study: Prepare) -> None:
    home = submit(study("import time; time.sleep(600)"), Path("results"), []).home
    wait_for(lambda: any(run.state is JobState.RUNNING for run in runs_below(home)))
    assert len(cancel(home).runs) == 4
    runs = finished(home).values()
    assert {run.state for run in runs} == {JobState.CANCELLED}
    assert all(processes_of(run.folder) == () for run in runs)
    wait_for(lambda: not any(map(is_held, home.glob(f"{FOLDER}/*.lock"))))
    assert len(list(home.glob("*/logs/job.out"))) == 1, "what waited was never started"
    with pytest.raises(StoreError, match="nothing to cancel; 4 runs are CANCELLED"):
        cancel(home)
    assert len(submit(study("import time; time.sleep(600)"), Path("results"), []).new) == 4


@pytest.mark.process
def test_nothing_is_lost_when_the_supervisor_is_killed(desk: Path, study: Prepare) -> None:
    """What runs goes on to its end, what waited is missing, and the next submit runs just that."""
    code = f"{WAIT}open('count', 'a').write('x')"
    home = submit(study(code), Path("results"), []).home
    wait_for(lambda: any(run.state is JobState.RUNNING for run in runs_below(home)))
    (supervisor,) = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if all(part in path.read_bytes() for part in (bytes(home.absolute()), b"local:run_one"))
    ]
    os.kill(supervisor, signal.SIGKILL)
    (desk / "go").touch()
    states = sorted(run.state.value for run in finished(home).values())
    assert states == ["COMPLETED", "LOST", "LOST", "LOST"]
    again = submit(study(code), Path("results"), [])
    assert (len(again.new), len(again.kept)) == (3, 1)
    finished(home)
    assert (desk / "count").read_text() == "xxxx"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("command=[no-such-program]", "the program 'no-such-program' is not on PATH"),
        ("command=[./nothing]", "nothing does not exist"),
        ("command=[./plain]", "plain is not executable"),
        (
            "command=[python3, trian.py]",
            "the script trian.py does not exist; did you mean 'train.py'",
        ),
        ("workdir=nowhere", "nowhere does not exist"),
    ],
)
def test_what_cannot_start_is_refused_before_anything_is_written(
    desk: Path, job: Prepare, setting: str, message: str
) -> None:
    (desk / "plain").write_text("#!/bin/sh\n")
    (desk / "train.py").write_text("")
    with pytest.raises(HpcTrainError) as failure:
        submit(job("pass", setting), Path("results"), [])
    assert message in failure.value.message
    assert failure.value.message.startswith("--set")
    assert not (desk / "results").exists()


@pytest.mark.parametrize(("line", "alone"), [("", True), ("print('RANK')", False)])
def test_ranks_that_nothing_joins_are_named(desk: Path, line: str, alone: bool) -> None:
    (desk / "train.py").write_text(f"{line}\n")
    ranks = (parse_setting("tasks_per_node=2"), parse_setting("launcher=spawn"))
    said: list[str] = []
    job = prepare(Request(path=Path("train.py"), overrides=ranks))
    finished(submit(job, Path("results"), [], say=said.append).home)
    assert any("train.py never calls init_process_group" in text for text in said) == alone


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_leaves_nothing_behind(desk: Path, study: Prepare) -> None:
    from hpc_train.base.processes import run

    (desk / "small").mkdir()
    assert run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", "small"], 10).returncode == 0
    try:
        with pytest.raises(StoreError, match="No space left on device") as failure:
            submit(study("pass", "repetitions=200"), Path("small/results"), [])
        assert failure.value.exit_code == 2
        assert not list((desk / "small" / "results").glob("*"))
    finally:
        run(["umount", "small"], 10)


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
