"""What of the shell's environment a submission leaves behind is said before it."""

from __future__ import annotations

import pytest

from hpc_train.pipeline.prepared import Prepared
from hpc_train.pipeline.run_states import executor_of
from tests.pipeline.on_slurm import job
from tests.submissions.slurm.fake_slurm import FakeSlurm


def notices_of(prepared: Prepared) -> tuple[str, ...]:
    return executor_of(prepared.first.site.value.scheduler).notices(prepared.points[0].plan)


def test_variables_of_sbatch_are_named(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "long")
    monkeypatch.setenv("SBATCH_ACCOUNT", "mine")
    prepared = job("partition=short")
    assert notices_of(prepared) == (
        "SBATCH_ACCOUNT=mine is effective: sbatch reads it as --account",
        "SBATCH_PARTITION=long is ignored: the script sets --partition itself",
    )


def test_a_shell_of_mpirun_is_named(slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMIX_RANK", "0")
    prepared = job()
    assert notices_of(prepared) == ("PMIX_RANK of this shell is not passed on",)


def test_a_machine_without_a_scheduler_needs_none(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_ACCOUNT", "mine")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    prepared = job(site="local")
    assert notices_of(prepared) == ()
