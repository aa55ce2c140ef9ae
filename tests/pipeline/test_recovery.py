"""A submission that was killed: what Slurm has is found again, what it never had is submitted."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from hpc_train.json_files import read_json
from hpc_train.model.run import Manifest, Run, RunFolder
from hpc_train.model.submission import JobState
from hpc_train.pipeline.cancel import cancel
from hpc_train.pipeline.run_states import runs_below
from hpc_train.pipeline.submit import SubmitOptions, submit
from hpc_train.runs.run_folders import run_folders
from tests.pipeline.on_slurm import RESULTS, age, ids, says, study, submission
from tests.submissions.slurm.fake_slurm import BUSY, FakeSlurm, option

HOME = RESULTS / "s"
# The parent of a command of Slurm is the process that submits.
KILL = "kill -KILL $PPID; exit 1"


def killed(slurm: FakeSlurm, program: str, body: str) -> tuple[RunFolder, ...]:
    """Submit a study in a process that is killed inside a program; return what it leaves."""
    study()
    slurm.on(program, body)
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train", "submit", "study.yaml", "--site", "slurm-generic"],
        capture_output=True,
        timeout=240,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    slurm.on(program, "")
    return run_folders(HOME)


def asked_for(runs: tuple[RunFolder, ...]) -> list[RunFolder]:
    """Return the runs whose submission was under way."""
    return [run for run in runs if run.submission.exists() and not submission(run).answered]


def states() -> dict[str, Run]:
    return {run.folder.run_id: run for run in runs_below(HOME)}


@pytest.mark.process
def test_a_job_that_was_accepted_is_found_and_not_submitted_twice(slurm: FakeSlurm) -> None:
    left = killed(slurm, "sbatch", f'accept "$@"; {KILL}')
    first = asked_for(left)
    assert [submission(run).native_id for run in first] == ["_1", "_2"]
    age(first)
    again = submit(study(), RESULTS, [])
    assert (len(again.new), len(again.kept)) == (2, 2)
    assert len(slurm.calls("sbatch")) == 2
    assert ids(first) == ["1001_1", "1001_2"], "the ids were learned, and written down"
    assert sorted(ids(run_folders(HOME))) == slurm.ids()
    assert len({option(argv, "comment") for argv in slurm.calls("sbatch")}) == 2


@pytest.mark.process
def test_the_rest_that_was_never_asked_for_uses_up_no_attempt(slurm: FakeSlurm) -> None:
    left = killed(slurm, "sbatch", f'accept "$@"; {KILL}')
    assert len(left) == 4
    rest = {run.run_id for run in left if not run.submission.exists()}
    assert len(rest) == 2
    assert {run.run_id for run in submit(study(), RESULTS, []).new} == rest


@pytest.mark.process
def test_folders_from_before_the_first_question_are_used_again(slurm: FakeSlurm) -> None:
    left = killed(slurm, "scontrol", KILL)
    assert len(left) == 4
    assert not any(run.submission.exists() for run in left)
    found = states().values()
    assert {run.state for run in found} == {JobState.UNKNOWN}
    assert {run.problem for run in found} == {"it was never submitted"}
    again = submit(study(), RESULTS, [])
    assert {run.run_id for run in again.new} == {run.run_id for run in left}
    assert sorted(ids(again.new)) == slurm.ids()
    assert {read_json(run.manifest, Manifest).attempt for run in again.new} == {1}


@pytest.mark.process
def test_a_job_that_slurm_never_had_is_another_attempt(slurm: FakeSlurm) -> None:
    first = asked_for(killed(slurm, "sbatch", KILL))
    age(first)
    for run in first:
        found = states()[run.run_id]
        assert found.state is JobState.LOST
        assert found.problem == "Slurm never received it: sbatch was not answered"
    again = submit(study(), RESULTS, [])
    names = {run.run_id for run in again.new}
    assert {f"{run.run_id}.2" for run in first} < names
    assert (len(names), again.kept) == (4, ())
    assert len(slurm.calls("sbatch")) == 3


@pytest.mark.process
def test_a_job_that_may_be_on_its_way_is_left_alone(slurm: FakeSlurm) -> None:
    first = asked_for(killed(slurm, "sbatch", KILL))
    again = submit(study(), RESULTS, [])
    assert {run.folder.run_id for run in again.kept} == {run.run_id for run in first}
    assert {run.state for run in again.kept} == {JobState.UNKNOWN}
    assert all("has not printed a job id" in run.problem for run in again.kept)
    assert len(slurm.calls("sbatch")) == 2


@pytest.mark.process
def test_while_slurm_is_silent_nothing_is_submitted_twice(slurm: FakeSlurm) -> None:
    first = asked_for(killed(slurm, "sbatch", f'accept "$@"; {KILL}'))
    age(first)
    slurm.on("squeue", f"echo '{BUSY}' >&2; exit 1")
    again = submit(study(), RESULTS, [])
    assert {run.folder.run_id for run in again.kept} == {run.run_id for run in first}
    assert {run.state for run in again.kept} == {JobState.UNKNOWN}
    assert all(run.problem == f"Slurm does not answer: {BUSY}" for run in again.kept)
    slurm.on("squeue", "")
    assert submit(study(), RESULTS, []).new == ()


@pytest.mark.process
def test_a_job_that_was_found_can_be_cancelled_at_once(slurm: FakeSlurm) -> None:
    first = asked_for(killed(slurm, "sbatch", f'accept "$@"; {KILL}'))
    assert len(cancel(HOME).runs) == 2
    assert slurm.calls("scancel") == [["1001_1", "1001_2"]]
    assert {submission(run).state for run in first} == {JobState.CANCELLED}


@pytest.mark.process
def test_a_folder_that_holds_anything_of_a_run_is_kept(slurm: FakeSlurm) -> None:
    first, second, third, _ = killed(slurm, "scontrol", KILL)
    (first.logs / "job.out").write_text("precious")
    says(second)
    says(third, ended=1001.0, exit_code=0)
    again = submit(study(), RESULTS, [])
    names = {run.run_id for run in again.new}
    assert f"{first.run_id}.2" in names
    assert len(names) == 2
    # One that has begun may still be running, whoever handed it over.
    assert {run.folder for run in again.kept} == {second, third}
    assert (first.logs / "job.out").read_text() == "precious"


@pytest.mark.parametrize(
    ("state", "again"),
    [
        ("NODE_FAIL", 1),
        ("PREEMPTED", 1),
        ("CANCELLED", 1),
        ("FAILED", 0),
        ("TIMEOUT", 0),
        ("OUT_OF_MEMORY", 0),
        ("RUNNING", 0),
    ],
)
def test_what_the_job_is_to_blame_for_is_a_result(slurm: FakeSlurm, state: str, again: int) -> None:
    submit(study(), RESULTS, [])
    slurm.becomes("1001_2", state, nodes="n1")
    done = submit(study(), RESULTS, [])
    assert (len(done.new), len(done.kept)) == (again, 4 - again)
    assert all(run.run_id.endswith("-r2.2") for run in done.new)
    wish = SubmitOptions(rerun_failed=True)
    more = len(submit(study(), RESULTS, [], wish).new)
    assert more == (0 if again or state == "RUNNING" else 1)
