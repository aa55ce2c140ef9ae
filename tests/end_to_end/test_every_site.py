"""The study of the example at every kind of site: this machine, Slurm, ssh, PBS, SageMaker."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import ROOT, Slurm
from tests.end_to_end.user import User, user_of
from tests.servers.hosts import SshHosts
from tests.servers.pbs import RunningPbs, pbs
from tests.servers.sagemaker import PROFILE, TrainingService, serving
from tests.submissions.waiting import LIMIT_S

__all__ = ["pbs"]

pytestmark = [pytest.mark.slurm, pytest.mark.ssh]

SITES = ("local", "lab", "lab-hosts", "lab-pbs", "sagemaker")
STUDY = "examples/digits/study.yaml"
SMALLER = (
    "axes.launcher=[torchrun]",
    "repetitions=1",
    "command.8=1",
)


@pytest.fixture
def sagemaker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingService]:
    """Return a SageMaker on this machine."""
    with serving(tmp_path / "aws", monkeypatch) as service:
        yield service


@pytest.fixture
def slurm_lab(lab: Lab, slurm: Slurm) -> Iterator[Lab]:
    """Return the lab; end the jobs that a failed test leaves in its queue."""
    yield lab
    slurm("scancel", "--user=root")


@pytest.fixture
def everywhere(
    slurm_lab: Lab,
    ssh_lab: SshHosts,
    pbs: RunningPbs,
    sagemaker: TrainingService,
    tmp_path: Path,
) -> User:
    """Return someone who may submit to all of them."""
    shutil.copytree(ROOT / "examples/digits", tmp_path / "examples/digits")
    for profile in (ssh_lab.profile, pbs.profile):
        shutil.copy(profile, tmp_path)
    (tmp_path / "sagemaker.yaml").write_text(PROFILE)
    user = user_of(slurm_lab, tmp_path)
    path = f"{ssh_lab.folder}/bin{os.pathsep}{user.environment['PATH']}"
    environment = {**user.environment, **sagemaker.environment, "PATH": path}
    return User(folder=tmp_path, environment=environment, profile=user.profile)


def settings(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


@pytest.mark.long
def test_one_study_at_every_site(everywhere: User, torch: None) -> None:
    for site in SITES:
        words = ("--site", site, "--name", f"digits-{site}", *settings(*SMALLER))
        done = everywhere.hpctrain("submit", STUDY, *words)
        assert done.returncode == 0, done.stderr
    for site in SITES:
        # On a busy machine the runs take longer than a command may.
        rows = everywhere.wait_all(f"digits-{site}", "COMPLETED", within_s=3 * LIMIT_S)
        assert sorted(row["axes"]["tasks_per_node"] for row in rows.values()) == [1, 2]
        report = everywhere.hpctrain("report", f"digits-{site}", "-f", "json")
        points = json.loads(report.stdout)["rows"]
        assert len(points) == 2
        assert all(point["throughput"]["value"] > 0 for point in points)
    compared = everywhere.hpctrain("compare", "digits-lab", "digits-lab-pbs", "-f", "json")
    first = json.loads(compared.stdout)["summary"][0]
    assert first.startswith("The sites lab and lab-pbs differ in scheduler (slurm and pbs)")
    different = {
        one["setting"]: (one["a"], one["b"]) for one in json.loads(compared.stdout)["differences"]
    }
    assert different["scheduler"] == ("slurm", "pbs")
