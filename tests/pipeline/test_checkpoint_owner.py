"""A job that names a folder of checkpoints which an earlier run has used."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SpecError
from hpc_train.pipeline.dry_run import dry_run
from hpc_train.pipeline.submit import SubmitOptions, submit
from tests.pipeline.on_slurm import RESULTS, job, says, submission
from tests.submissions.slurm.fake_slurm import FakeSlurm

SHARED = "env.HPCTRAIN_CHECKPOINTS=ckpt"


def submit_first(name: str = "j") -> Path:
    """Submit a job, and note in `ckpt` what its script would."""
    (run,) = submit(job(SHARED), RESULTS, []).new
    Path("ckpt").mkdir(exist_ok=True)
    Path("ckpt", "owner").write_text(f"{name}\n{run.path.absolute()}\n\n")
    says(run)
    return run.path


def notices(*settings: str) -> list[str]:
    said: list[str] = []
    submit(job(SHARED, *settings), RESULTS, [], say=said.append)
    return [text for text in said if "env.HPCTRAIN_CHECKPOINTS" in text]


def test_the_run_that_has_not_ended_is_named(slurm: FakeSlurm) -> None:
    run = submit_first()
    (said,) = notices()
    assert "env.HPCTRAIN_CHECKPOINTS = ckpt is used by" in said
    assert f"{run}, which has not ended" in said
    assert "directives: {dependency: singleton}" in said
    assert said in list(dry_run(job(SHARED), RESULTS, SubmitOptions()))


def test_a_job_that_waits_for_it_is_not_warned(slurm: FakeSlurm) -> None:
    submit_first()
    assert notices("directives.dependency=singleton") == []


def test_the_checkpoints_of_a_run_that_has_ended_are_free(slurm: FakeSlurm) -> None:
    (run,) = submit(job(SHARED), RESULTS, []).new
    Path("ckpt").mkdir()
    Path("ckpt", "owner").write_text(f"j\n{run.path.absolute()}\n\n")
    slurm.becomes(submission(run).native_id, "COMPLETED")
    says(run, ended=1001.0, exit_code=0)
    assert notices() == []


def test_the_checkpoints_of_another_job_are_refused(slurm: FakeSlurm) -> None:
    submit_first("other")
    with pytest.raises(SpecError, match="has the checkpoints of the job other ") as error:
        notices()
    assert "and this one is j: " in error.value.message
    assert error.value.hint.endswith("under this name: rm ckpt/owner")
    with pytest.raises(SpecError, match="has the checkpoints of the job other "):
        list(dry_run(job(SHARED), RESULTS, SubmitOptions()))
    assert len(slurm.calls("sbatch")) == 1


@pytest.mark.parametrize("text", [b"", b"j", b"\xff\n\n", b"j\n/no/run\n\n"])
def test_a_file_that_says_nothing_is_ignored(slurm: FakeSlurm, text: bytes) -> None:
    Path("ckpt").mkdir()
    Path("ckpt", "owner").write_bytes(text)
    assert notices() == []


def test_a_folder_is_relative_to_that_of_the_job(slurm: FakeSlurm) -> None:
    run = submit_first()
    Path("below").mkdir()
    Path("ckpt").rename("below/ckpt")
    assert notices() == []
    (said,) = notices(f"workdir={Path('below').absolute()}")
    assert f"{run}, which has not ended" in said
