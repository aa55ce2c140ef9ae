"""sbatch --test-only: its verdict, on one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.submissions.slurm.sbatch import test_only as verdict
from tests.submissions.slurm.fake_slurm import FakeSlurm


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "j"
    path.write_text("#!/bin/bash\n#SBATCH --partition=short\n")
    return path


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'sbatch: Job 9 to start at 2026-11-21T06:52:00 using 2 processors on nodes n1' >&2; "
         "exit 0",
         "Job 9 to start at 2026-11-21T06:52:00 using 2 processors on nodes n1"),
        ("echo 'sbatch: error: invalid partition specified: x' >&2\n"
         "echo 'allocation failure: Invalid partition name specified' >&2; exit 1",
         "refused: invalid partition specified: x; allocation failure: Invalid partition name "
         "specified (sinfo -s lists the partitions; name one with --partition)"),
        ("echo 'allocation failure: Kittens' >&2; exit 1", "refused: allocation failure: Kittens"),
    ],
)  # fmt: skip
def test_a_verdict(slurm: FakeSlurm, script: Path, body: str, said: str) -> None:
    slurm.on("sbatch", body)
    assert verdict(SlurmEndpoint(), script) == said
    assert slurm.calls("sbatch") == [["--test-only", str(script)]]


def test_the_site_s_configuration_is_used(slurm: FakeSlurm, tmp_path: Path, script: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.touch()
    verdict(SlurmEndpoint(conf=str(conf)), script)
    assert slurm.environment()["SLURM_CONF"] == str(conf)


def test_sbatch_sees_what_it_will_see_at_the_submission(
    slurm: FakeSlurm, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SBATCH_QOS", "SBATCH_PARTITION", "SLURM_JOB_ID", "PMIX_RANK"):
        monkeypatch.setenv(name, "1")
    verdict(SlurmEndpoint(), script)
    found = slurm.environment()
    assert found["SBATCH_QOS"] == "1"
    assert not {"SBATCH_PARTITION", "SLURM_JOB_ID", "PMIX_RANK"} & found.keys()
