"""The study of the example at every kind of site: this machine, Slurm, ssh, PBS, SageMaker."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.lab.sagemaker.start_and_stop import FOLDER
from hpc_train.lab.ssh_hosts.start_and_stop import SshLab
from hpc_train.lab.state_file import Lab
from tests.conftest import ROOT, Hpctrain
from tests.end_to_end.ssh_hosts import ssh_lab
from tests.end_to_end.user import User, user_of
from tests.pipeline.waiting import LIMIT_S, wait_for

__all__ = ["ssh_lab"]
pytestmark = [pytest.mark.slurm, pytest.mark.ssh, pytest.mark.slow]

SITES = ("local", "lab", "lab-hosts", "lab-pbs", "sagemaker")
STUDY = "examples/digits/study.yaml"
SMALLER = (
    f"axes.site=[{', '.join(SITES)}]",
    "axes.launcher=[torchrun]",
    "repetitions=1",
    "command.8=1",
)


@pytest.fixture
def pbs(hpctrain: Hpctrain) -> Iterator[Path]:
    """Return the folder of a small PBS; its socket needs a short path."""
    folder = Path(tempfile.mkdtemp(prefix="hpct-"), "pbs")
    done = hpctrain("up", "--pbs", "--nodes", "2", "--cpus", "2", "--dir", str(folder))
    assert done.returncode == 0, done.stderr
    yield folder
    assert hpctrain("down", "--pbs", "--dir", str(folder)).returncode == 0
    folder.parent.rmdir()


@pytest.fixture
def sagemaker(hpctrain: Hpctrain) -> Iterator[dict[str, str]]:
    """Return the variables of a SageMaker on this machine."""
    pytest.importorskip("boto3")
    done = hpctrain("up", "--sagemaker")
    assert done.returncode == 0, done.stderr
    yield dict(re.findall(r"(AWS_\w+)=(\S+)", Path(FOLDER, "env").read_text()))
    assert hpctrain("down", "--sagemaker").returncode == 0


@pytest.fixture
def everywhere(
    lab: Lab, ssh_lab: SshLab, pbs: Path, sagemaker: dict[str, str], tmp_path: Path
) -> User:
    """Return someone who may submit to all of them."""
    shutil.copytree(ROOT / "examples/digits", tmp_path / "examples/digits")
    user = user_of(lab, tmp_path)
    path = os.pathsep.join([f"{ssh_lab.folder}/bin", f"{pbs}/bin", user.environment["PATH"]])
    environment = {**user.environment, **sagemaker, "PATH": path}
    return User(folder=tmp_path, environment=environment, profile=user.profile)


def settings(*texts: str) -> list[str]:
    return [word for text in texts for word in ("--set", text)]


def _open_runs(user: User) -> list[str]:
    """Return the runs of the study that have not ended."""
    rows = user.runs("digits-strong").values()
    return [row["run"] for row in rows if row["state"] in ("PENDING", "RUNNING", "UNKNOWN")]


def test_one_study_at_every_site_and_one_report(everywhere: User, torch: None) -> None:
    done = everywhere.hpctrain("submit", STUDY, *settings(*SMALLER))
    assert done.returncode == 0, done.stderr
    # On a busy machine the ten runs take longer than a command may.
    wait_for(lambda: not _open_runs(everywhere), within_s=3 * LIMIT_S)
    rows = everywhere.all_completed("digits-strong")
    assert sorted(
        (row["axes"]["site"], row["axes"]["tasks_per_node"]) for row in rows.values()
    ) == [(site, ranks) for site in sorted(SITES) for ranks in (1, 2)]
    report = everywhere.hpctrain("report", "digits-strong", "-f", "json")
    points = json.loads(report.stdout)["rows"]
    assert {(point["series"], point["tasks_per_node"]) for point in points} == {
        (f"launcher=torchrun, site={site}", ranks) for site in SITES for ranks in (1, 2)
    }
    assert all(point["throughput"]["value"] > 0 for point in points)
    compared = everywhere.hpctrain(
        "compare", "digits-strong:site=lab", "digits-strong:site=lab-pbs", "-f", "json"
    )
    first = json.loads(compared.stdout)["summary"][0]
    assert first.startswith("The sites lab and lab-pbs differ in scheduler (slurm and pbs)")
    different = {
        one["setting"]: (one["a"], one["b"]) for one in json.loads(compared.stdout)["differences"]
    }
    assert different["scheduler"] == ("slurm", "pbs")
    again = everywhere.hpctrain("submit", STUDY, *settings(*SMALLER))
    assert (again.returncode, again.stdout) == (0, "")
    assert "0 runs submitted, 10 exist already" in again.stderr
