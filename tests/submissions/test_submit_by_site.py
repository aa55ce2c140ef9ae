"""Once more on the site that a run was planned for, whatever lies next to it."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError, StoreError
from hpc_train.runs.json_files import read_json
from hpc_train.runs.run import JobState, Manifest, Run, RunFolder
from hpc_train.runs.run_folders import run_folders
from hpc_train.runs.run_states import runs_below
from hpc_train.submissions.retry import retry
from hpc_train.submissions.submit import no_output, submit
from tests.slurm.fake_slurm import FakeSlurm, option
from tests.submissions.on_slurm import (
    RESULTS,
    age,
    folders,
    ids,
    job,
    profile,
    says,
    study,
    submission,
)
from tests.submissions.waiting import finished


def test_the_profile_still_counts_in_another_folder(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = profile("limits: {max_array_running: 1}")
    done = submit(study(site=site), RESULTS.absolute(), [])
    for job_id in ("1001_1", "1001_2"):
        slurm.becomes(job_id, "FAILED", nodes="n1")
    monkeypatch.chdir("/")
    retry(done.home, [], no_output)
    assert option(slurm.calls("sbatch")[2], "array") == "1,2%1"


@pytest.mark.process
def test_each_run_goes_back_to_the_site_it_was_planned_for(
    slurm: FakeSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (here,) = submit(job('command=["sh", "-c", "exit 3"]', site="local"), RESULTS, []).new
    home = here.path.parent
    finished(home)
    (there,) = submit(job("launcher=srun", "gpus_per_node=1", "time=1h"), RESULTS, []).new
    slurm.becomes("1001", "FAILED", nodes="n1")
    said: list[str] = []
    new = retry(home, [], said.append).new
    executors = {
        str(read_json(run.manifest, Manifest).provenance["retry_of"]): submission(run).executor
        for run in new
    }
    assert executors == {here.run_id: "local", there.run_id: "slurm"}
    assert len(slurm.calls("sbatch")) == 2
    assert said == ["cost: 1 run: at most 1 GPU-hours, 1 core-hours"]
    slurm.becomes("1002", "FAILED", nodes="n1")
    finished(home)


@pytest.fixture
def failed(slurm: FakeSlurm) -> RunFolder:
    """Return the run of a job that reached its time limit."""
    settings = ("time=1m", "env.X=1", "setup=[echo hello]", "mem=2G", "workdir=.")
    (run,) = submit(job(*settings), RESULTS, []).new
    slurm.becomes(submission(run).native_id, "TIMEOUT", nodes="n1", reason="TimeLimit")
    return run


def again(run: RunFolder, *settings: str) -> RunFolder:
    (new,) = retry(run.path, ["retry"], no_output, settings=settings).new
    return new


def test_the_new_run_differs_in_what_was_set(failed: RunFolder) -> None:
    new = again(failed, "time=2h", "env.Y=2")
    old_text, new_text = failed.script.read_text(), new.script.read_text()
    assert "#SBATCH --time=00:01:00" in old_text
    assert "#SBATCH --time=02:00:00" in new_text
    before, after = (read_json(run.manifest, Manifest) for run in (failed, new))
    assert {name: str(value) for name, value in after.spec.env.items()} == {"X": "1", "Y": "2"}
    assert after.spec.setup == before.spec.setup
    assert after.spec.workdir == before.spec.workdir
    assert (after.attempt, after.provenance["retry_of"]) == (2, failed.run_id)
    assert after.script_digest != before.script_digest
    assert new.run_id != failed.run_id
    assert new.run_id.rpartition("-")[2] != failed.run_id.rpartition("-")[2]
    settings = after.plan.settings
    assert settings["time"].origin == "--set time"
    assert settings["mem"].origin == str(failed.manifest)
    assert settings["gpus_per_node"].origin != str(failed.manifest)


def test_a_setting_of_the_same_value_gives_the_same_script(failed: RunFolder) -> None:
    # Comments name the origin of each value.
    texts = [run.script.read_text() for run in (failed, again(failed, "time=1m"))]
    old, new = (re.sub(r"(?m)(?:^|  )# .*$", "", text) for text in texts)
    assert new == old


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("tim=2h", "--set tim: 'tim' is not a key of a job; did you mean 'time'?"),
        ("time=soon", "--set time: resources.time: "),
        ("time", "--set time: write KEY=VALUE"),
        ("name=other", "--set name: a retry stays in the folder results/j"),
        ("workdir=/none", "--set workdir: the folder /none does not exist"),
        ("launcher=srn", "--set launcher: "),
        ("command.0=pythn3/x", "--set command.0: "),
    ],
)
def test_a_wrong_setting_submits_nothing(failed: RunFolder, setting: str, message: str) -> None:
    before = folders(failed.path.parent)
    with pytest.raises(HpcTrainError) as error:
        again(failed, setting)
    assert error.value.message.startswith(message)
    assert error.value.exit_code == 2
    assert folders(failed.path.parent) == before


def test_a_run_of_a_study_is_not_changed(slurm: FakeSlurm) -> None:
    done = submit(study(), RESULTS, [])
    slurm.becomes("1001_2", "FAILED", nodes="n1", reason="NonZeroExitCode")
    (run,) = [run for run in done.new if submission(run).native_id == "1001_2"]
    before = folders(done.home)
    for path in (run.path, done.home):
        with pytest.raises(StoreError, match="--set cannot change a run of a study") as error:
            retry(path, [], no_output, settings=("time=2h", "env.A=b c"))
        assert error.value.hint == (
            "hpctrain submit STUDY.yaml --set time=2h --set 'env.A=b c' submits each changed point "
            "as new runs"
        )
    assert folders(done.home) == before


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
        ("NODE_FAIL", 1), ("PREEMPTED", 1), ("CANCELLED", 1), ("FAILED", 0), ("TIMEOUT", 0),
        ("OUT_OF_MEMORY", 0), ("RUNNING", 0),
    ],
)  # fmt: skip
def test_what_the_job_is_to_blame_for_is_a_result(slurm: FakeSlurm, state: str, again: int) -> None:
    submit(study(), RESULTS, [])
    slurm.becomes("1001_2", state, nodes="n1")
    done = submit(study(), RESULTS, [])
    assert (len(done.new), len(done.kept)) == (again, 4 - again)
    assert all(run.run_id.endswith("-r2.2") for run in done.new)
    more = len(submit(study(), RESULTS, [], rerun_failed=True).new)
    assert more == (0 if again or state == "RUNNING" else 1)
