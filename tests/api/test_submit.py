"""hpc_train.submit: real runs on this machine, from a job, a study and a script."""

import os
import signal
from pathlib import Path

import pytest

import hpc_train
from hpc_train.api.arguments import JobKeys
from hpc_train.base.decode import keys_of
from hpc_train.base.errors import HpcTrainError, WaitTimeoutError
from hpc_train.jobs.job import JobSpec, Resources

LIMIT_S = 240.0


def submitted(file: str, *args: object, **keys: object) -> hpc_train.SubmittedRun:
    run = hpc_train.submit(file, args, launcher="single", settings=keys)
    assert isinstance(run, hpc_train.SubmittedRun)
    return run


def test_keywords_are_exactly_the_keys_of_a_job() -> None:
    keys = {*keys_of(JobSpec), *keys_of(Resources)} - {"resources", "storage"}
    assert set(JobKeys.__annotations__) == keys


@pytest.mark.process
def test_a_job_runs_with_the_keys_of_the_call(files: Path) -> None:
    run = hpc_train.submit("job.yaml", env={"X": "a b"}, nodes=None)
    assert isinstance(run, hpc_train.SubmittedRun)
    assert run.wait(LIMIT_S) == run.state == "COMPLETED"
    assert run.logs(rank=0) == "X is a b\n"
    assert run.logs() == "==> rank-0.out <==\nX is a b\n"
    assert "X='a b'" in run.script
    assert run.details["exit_code"] == 0
    assert run.runs == (run,)
    assert Path(run) == run.folder == files / "results" / "demo" / run.id


@pytest.mark.process
def test_settings_override_keywords_as_set_overrides_options(files: Path) -> None:
    run = hpc_train.submit("job.yaml", env={"X": 1}, settings={"env.X": "2"})
    assert isinstance(run, hpc_train.SubmittedRun)
    run.wait(LIMIT_S)
    assert run.logs(rank=0) == "X is 2\n"


@pytest.mark.process
def test_a_script_gets_its_arguments(files: Path) -> None:
    run = submitted("train.py", "--epochs", 3, "a b")
    assert run.wait(LIMIT_S) == "COMPLETED"
    assert run.logs(rank=0, lines=1) == "words ['--epochs', '3', 'a b']\n"


@pytest.mark.process
def test_wait_gives_up_and_the_run_goes_on(files: Path) -> None:
    run = submitted("train.py", "wait")
    with pytest.raises(WaitTimeoutError, match=r"after 0\.1 s; the runs continue") as error:
        run.wait(0.1)
    assert isinstance(error.value, TimeoutError)
    assert not run.finished
    other = submitted("train.py", "wait")
    other.cancel()
    assert (other.wait(LIMIT_S), other.reason) == ("CANCELLED", "cancelled by the user")
    (files / "go").touch()
    assert run.wait(LIMIT_S) == "COMPLETED"


@pytest.mark.process
def test_a_run_that_was_removed_is_reported(files: Path) -> None:
    run = submitted("train.py")
    run.wait(LIMIT_S)
    run.folder.rename(files / "elsewhere")
    with pytest.raises(HpcTrainError, match="the folder was removed"):
        hpc_train.SubmittedRun(run.folder).state  # noqa: B018
    (study,) = [hpc_train.SubmittedStudy(run.folder.parent)]
    assert study.states == {}


@pytest.mark.process
def test_the_call_changes_neither_folder_nor_signals_nor_output(
    files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = {number: signal.getsignal(number) for number in signal.valid_signals()}
    environment = dict(os.environ)
    run = hpc_train.submit("job.yaml")
    run.wait(LIMIT_S)
    run.runs[0].logs()
    assert Path.cwd() == files
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == kept
    assert dict(os.environ) == environment
    assert capfd.readouterr() == ("", "")


@pytest.mark.process
def test_a_folder_change_after_the_call_loses_no_run(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = hpc_train.submit("job.yaml")
    monkeypatch.chdir("/")
    assert run.wait(LIMIT_S) == "COMPLETED"
