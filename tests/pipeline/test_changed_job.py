"""`retry --set`: the job of a run, planned again with other values."""

from __future__ import annotations

import re

import pytest

from hpc_train.errors import HpcTrainError, StoreError
from hpc_train.json_files import read_json
from hpc_train.model.run import Manifest, RunFolder
from hpc_train.pipeline.retry import RetryOptions, retry
from hpc_train.pipeline.submit import no_output, submit
from tests.pipeline.on_slurm import RESULTS, folders, job, study, submission
from tests.submissions.slurm.fake_slurm import FakeSlurm


@pytest.fixture
def failed(slurm: FakeSlurm) -> RunFolder:
    """Return the run of a job that reached its time limit."""
    settings = ("time=1m", "env.X=1", "setup=[echo hello]", "mem=2G", "workdir=.")
    (run,) = submit(job(*settings), RESULTS, []).new
    slurm.becomes(submission(run).native_id, "TIMEOUT", nodes="n1", reason="TimeLimit")
    return run


def again(run: RunFolder, *settings: str) -> RunFolder:
    options = RetryOptions(settings=settings)
    (new,) = retry(run.path, ["retry"], no_output, options).new
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
            retry(path, [], no_output, RetryOptions(settings=("time=2h", "env.A=b c")))
        assert error.value.hint == (
            "hpctrain submit STUDY.yaml --set time=2h --set 'env.A=b c' submits each changed point "
            "as new runs"
        )
    assert folders(done.home) == before
