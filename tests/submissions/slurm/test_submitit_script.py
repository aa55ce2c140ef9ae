"""Each hook of submitit that is overridden: if a new version drops one, a test here fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from submitit.core import utils

from hpc_train.errors import SubmitError
from hpc_train.model.run import RunFolder
from hpc_train.submissions.slurm.squeue import FIELD, RECORD
from hpc_train.submissions.slurm.submitit_script import ScriptExecutor, ScriptJob, job_id_of
from tests.submissions.slurm.conftest import Fake


def executor(run: RunFolder, **changes: str | None) -> ScriptExecutor:
    return ScriptExecutor(run.path, run.script, ["--comment=c"], [str(run.path)], changes)


def submit(asked: ScriptExecutor) -> ScriptJob:
    return asked.job(asked.start())


def test_sbatch_gets_the_script_its_options_and_arguments(
    fake: Fake, run: RunFolder, tmp_path: Path
) -> None:
    fake("sbatch", f'printf "%s\\n" "$@" >{tmp_path}/argv; echo "123;cluster"')
    before = run.script.read_bytes()
    job = submit(executor(run))
    assert isinstance(job, ScriptJob)
    assert job.job_id == "123"
    argv = (tmp_path / "argv").read_text().splitlines()
    assert argv == ["--parsable", "--comment=c", str(run.script), str(run.path)]
    assert run.script.read_bytes() == before


def test_nothing_else_is_left_in_the_run_folder(fake: Fake, run: RunFolder) -> None:
    fake("sbatch", "echo 123")
    submit(executor(run))
    assert sorted(path.name for path in run.path.iterdir()) == ["job.sbatch", "logs"]


def test_the_environment_is_changed_for_sbatch_alone(
    fake: Fake, run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    fake("sbatch", f'echo "${{SLURM_JOB_ID-none}} $SLURM_CONF" >{tmp_path}/seen; echo 1')
    submit(executor(run, SLURM_JOB_ID=None, SLURM_CONF="/a b"))
    assert (tmp_path / "seen").read_text() == "none /a b\n"


@pytest.mark.parametrize("body", ["echo 'sbatch: error: no' >&2; exit 1", "echo what"])
def test_a_refusal_is_an_error_and_leaves_nothing(
    fake: Fake, run: RunFolder, body: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fake("sbatch", body)
    with pytest.raises(SubmitError, match="no"):
        submit(executor(run))
    assert sorted(path.name for path in run.path.iterdir()) == ["job.sbatch", "logs"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    ["17", "17;alpha", "Welcome to Alpha\n17", b"17\n", "17\nThank you", "Submitted batch job 17"],
)
def test_an_id_is_read_from_what_sbatch_prints(text: str | bytes) -> None:
    assert job_id_of(text) == "17"


def test_no_array_of_submitits_own(fake: Fake, run: RunFolder) -> None:
    with pytest.raises(NotImplementedError):
        executor(run).map_array(print, [1, 2])


def test_a_job_reads_its_log_and_its_result(fake: Fake, run: RunFolder) -> None:
    fake("sbatch", "echo 123")
    job = submit(executor(run))
    assert job.stdout() is None
    (run.logs / "job.out").write_text("words\n")
    assert job.stdout() == job.stderr() == "words\n"
    run.status.write_text(json.dumps({"started": 1, "ended": 2, "exit_code": 0}))
    assert job.done()
    assert job.result() == 0
    assert job.exception() is None


def test_a_failed_job_has_its_code_and_an_exception(fake: Fake, run: RunFolder) -> None:
    fake("sbatch", "echo 123")
    fields = ("123", "FAILED", "2026-11-21T01:00:00", "n1", "NonZeroExitCode", "j", "c")
    fake("squeue", f"echo '{FIELD.join(fields)}{RECORD}'")
    job = submit(executor(run))
    run.status.write_text(json.dumps({"started": 1, "ended": 2, "exit_code": 7}))
    assert job.result() == 7
    assert isinstance(job.exception(), utils.FailedJobError)


def test_importing_it_adds_no_log_handlers() -> None:
    code = (
        "import logging, hpc_train.submissions.slurm.submitit_script\n"
        "print(logging.getLogger('submitit').handlers)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
