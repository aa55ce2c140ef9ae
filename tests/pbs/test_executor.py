"""Submit, query and cancel on a small PBS, also while it fails."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import SubmitError
from hpc_train.pbs import jobs as pbs_jobs
from hpc_train.pbs.executor import PbsExecutor
from hpc_train.runs import batch_executor
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.run import JobReport, JobState, RunFolder, SlurmEndpoint, Submission
from tests.servers.pbs import RunningPbs, running
from tests.sites.test_host_list import JOB, plan_of, write
from tests.submissions.waiting import wait_for

Make = Callable[..., RunFolder]
OPTIONS = ExecutorOptions(cluster=SlurmEndpoint())
EXECUTOR = PbsExecutor()


@pytest.fixture
def pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningPbs]:
    monkeypatch.setattr(batch_executor, "_PAUSES_S", (0.01, 0.01))
    monkeypatch.setattr(batch_executor, "_UNDER_WAY_S", 0.2)
    with running(tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def new(text: str = "sleep 300", name: str = "a, b-r1") -> RunFolder:
        run = RunFolder(path=tmp_path / "home" / name)
        run.logs.mkdir(parents=True)
        lines = ("#!/bin/bash", "#PBS -j oe", "#PBS -k doe", text, "")
        run.script.write_text("\n".join(lines))
        return run

    return new


def submission(run: RunFolder) -> Submission:
    return msgspec.json.decode(run.submission.read_bytes(), type=Submission)


def state(run: RunFolder) -> JobReport:
    return EXECUTOR.query({run: submission(run)})[run]


def submit(*runs: RunFolder) -> None:
    EXECUTOR.submit(runs[0].path.parent, runs, OPTIONS)


def jobs(pbs: RunningPbs) -> list[str]:
    return pbs.command("qselect", "-x").stdout.split()


def test_a_run_has_its_folder_and_its_log(pbs: RunningPbs, make: Make) -> None:
    run = make('echo "$HPCTRAIN_RUN"; exit 3')
    submit(run)
    wait_for(lambda: state(run).state is JobState.FAILED)
    assert (run.logs / "job.out").read_text() == f"{run.path}\n"
    found = state(run)
    assert (found.reason, found.nodes, found.job) == ("exit code 3", "pbs1", "1.pbs")
    assert submission(run).native_id == "1.pbs"


def test_runs_are_cancelled(pbs: RunningPbs, make: Make) -> None:
    runs = [make(name=f"r{number}") for number in range(3)]
    submit(*runs)
    wait_for(lambda: state(runs[0]).state is JobState.RUNNING)
    EXECUTOR.cancel(runs[0].path.parent, {run: submission(run) for run in runs})
    assert [submission(run).state for run in runs] == [JobState.CANCELLED] * 3
    assert pbs.command("qselect").stdout == ""


def test_a_run_on_a_lost_node_stays_cancelled(
    pbs: RunningPbs, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make(f"until [ -e {tmp_path}/end ]; do sleep 0.1; done; exit 3")
    submit(run)
    wait_for(lambda: state(run).state is JobState.RUNNING)
    monkeypatch.setattr(PbsExecutor, "end", lambda self, cluster, jobs: None)
    monkeypatch.setattr(batch_executor, "_MAX_QUERIES", 1)
    with pytest.raises(SubmitError, match="still in the queue") as failure:
        EXECUTOR.cancel(run.path.parent, {run: submission(run)})
    assert "qdel -W force 1.pbs" in failure.value.hint
    assert state(run).state is JobState.RUNNING
    (tmp_path / "end").touch()
    wait_for(lambda: state(run).state.finished)
    assert (state(run).state, state(run).reason) == (JobState.CANCELLED, "cancelled by the user")


def test_a_killed_submission_is_found_by_its_mark(pbs: RunningPbs, make: Make) -> None:
    run = make()
    submit(run)
    lost = msgspec.structs.replace(submission(run), native_id="")
    found = EXECUTOR.query({run: lost})[run]
    assert (found.state.active, found.job) == (True, "1.pbs")
    other = msgspec.structs.replace(lost, comment="hpctrain:other")
    assert EXECUTOR.query({run: other})[run].state is JobState.UNKNOWN
    old = msgspec.structs.replace(other, submitted="2020-01-01T00:00:00+00:00")
    report = EXECUTOR.query({run: old})[run]
    assert (report.state, report.reason) == (
        JobState.LOST,
        "PBS never received it: qsub was not answered",
    )


def test_a_refusal_without_advice_says_that_the_rest_is_missing(
    pbs: RunningPbs, make: Make
) -> None:
    good, bad = make(name="good"), make("#PBS -j x", name="bad")
    with pytest.raises(SubmitError, match="1 of 2 runs were submitted, then: qsub: ill") as failure:
        submit(good, bad)
    assert failure.value.hint == "submit again for the rest"
    assert (good.submission.exists(), bad.submission.exists()) == (True, False)


def test_without_a_history_the_files_decide(pbs: RunningPbs, make: Make) -> None:
    ended, active = make("true", name="ended"), make(name="active")
    submit(ended, active)
    wait_for(lambda: state(ended).state is JobState.COMPLETED)
    for fault in ("no-history", "history-gone"):
        path = pbs.fault(fault)
        found = EXECUTOR.query({run: submission(run) for run in (ended, active)})
        assert [found[ended].state, found[active].state] == [JobState.LOST, JobState.RUNNING]
        path.unlink()


def test_a_silent_server_loses_no_run(
    pbs: RunningPbs, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make()
    submit(run)
    path = pbs.fault("silent")
    monkeypatch.setattr(pbs_jobs, "_TIMEOUT_S", 1.0)
    found = state(run)
    assert found.state is JobState.UNKNOWN
    assert found.reason == "PBS does not answer: no answer within 1.0 s"
    path.unlink()
    monkeypatch.undo()


def test_a_job_that_waits_says_why(pbs: RunningPbs, make: Make) -> None:
    run = make("#PBS -l select=1:ncpus=99")
    submit(run)
    wait_for(lambda: state(run).reason.startswith("it can never run here: Insufficient amount"))


def test_what_pbs_would_refuse_is_refused_before(tmp_path: Path) -> None:
    plan = plan_of(write(tmp_path), JOB)
    limits = msgspec.structs.replace(OPTIONS.limits, max_submit_jobs=1)
    with pytest.raises(SubmitError, match="2 jobs, but the site allows 1"):
        EXECUTOR.ready(tmp_path, [plan, plan], msgspec.structs.replace(OPTIONS, limits=limits))
    excluded = msgspec.structs.replace(OPTIONS, exclude=("n1",))
    with pytest.raises(SubmitError, match="no option to leave out the nodes n1"):
        EXECUTOR.ready(tmp_path, [plan], excluded)
    with pytest.raises(SubmitError, match="with a quote, a backslash"):
        EXECUTOR.ready(tmp_path / "it's", [plan], OPTIONS)
    assert EXECUTOR.ready(tmp_path / "a b", [plan], OPTIONS) == OPTIONS
