"""The study of the example at every kind of site: this machine, Slurm, ssh, PBS, SageMaker."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import ROOT, Slurm
from tests.end_to_end.user import Row, User, user_of
from tests.servers.hosts import SshHosts
from tests.servers.pbs import RunningPbs, pbs
from tests.servers.sagemaker import PROFILE, TrainingService, serving
from tests.submissions.waiting import LIMIT_S, wait_for

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


SLEEP = ["sleep", "3217"]
RESOURCES = {"cpus_per_task": 1, "gpus_per_node": 0, "time": "20m"}


def submitted(user: User, name: str, program: str) -> None:
    """Submit a study with one run at every site."""
    command = ["bash", "-c", f'echo "here in {name}"; {program}']
    job = {"command": command, "launcher": "single", "resources": RESOURCES}
    study = {"scaling": "strong", "repetitions": 1, "axes": {"tasks_per_node": [1]}, "job": job}
    for site in SITES:
        file = user.write(f"{name}.yaml", study)
        done = user.hpctrain("submit", file, "--site", site, "--name", f"{name}-{site}")
        assert done.returncode == 0, done.stderr


def latest(user: User, name: str) -> dict[str, Row]:
    """Return the row of the last attempt at each site."""
    return {
        site: max(user.runs(f"{name}-{site}").values(), key=lambda row: int(row["attempt"]))
        for site in SITES
    }


def wait_for_state(user: User, name: str, state: str, attempt: int) -> dict[str, Row]:
    """Wait until the run at each site has a state; return the rows."""
    rows: dict[str, Row] = {}

    def reached() -> bool:
        rows.update(latest(user, name))
        return all((row["state"], row["attempt"]) == (state, attempt) for row in rows.values())

    def otherwise() -> str:
        final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "LOST")
        ended = [row for row in rows.values() if row["attempt"] == attempt]
        wrong = [row for row in ended if row["state"] in final and row["state"] != state]
        return "; ".join(f"{row['run']} is {row['state']}: {row['problem']}" for row in wrong)

    wait_for(reached, in_vain=otherwise)
    return rows


def sleeping() -> list[str]:
    """Return the processes of the jobs that wait to be cancelled."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            found += [path.parent.name] if words[:2] == SLEEP else []
    return found


def follow(user: User, run: str, line: str) -> None:
    """Follow the logs of a run until they have a line."""
    with user.running("logs", "-f", run) as (process, said):
        wait_for(lambda: line in said.read_text(), within_s=LIMIT_S)
        assert process.poll() is None, run


def cancelled(user: User, name: str, attempt: int) -> None:
    """Cancel a study; wait until its runs have left no process at any site."""
    for site in SITES:
        done = user.hpctrain("cancel", f"{name}-{site}")
        assert done.returncode == 0, done.stderr
    wait_for_state(user, name, "CANCELLED", attempt)
    wait_for(lambda: not sleeping(), within_s=LIMIT_S)


def test_failed_runs_of_every_site_have_logs_and_are_retried(everywhere: User) -> None:
    submitted(everywhere, "failing", "exit 3")
    rows = wait_for_state(everywhere, "failing", "FAILED", 1)
    assert set(rows) == set(SITES)
    for site, row in rows.items():
        assert row["problem"].endswith("exit code 3"), (site, row)
        printed = everywhere.hpctrain("logs", f"failing-{site}").stdout
        assert "here in failing" in printed, (site, printed)
        said = everywhere.hpctrain("cancel", f"failing-{site}").stderr
        assert "nothing to cancel; 1 run is FAILED" in said, said
        done = everywhere.hpctrain("retry", f"failing-{site}")
        assert done.returncode == 0, done.stderr
    again = wait_for_state(everywhere, "failing", "FAILED", 2)
    assert {row["run"] for row in again.values()} == {f"{row['run']}.2" for row in rows.values()}


def test_running_runs_of_every_site_are_followed_and_cancelled(everywhere: User) -> None:
    submitted(everywhere, "staying", f"exec {' '.join(SLEEP)}")
    rows = wait_for_state(everywhere, "staying", "RUNNING", 1)
    for site in rows:
        follow(everywhere, f"staying-{site}", "here in staying")
    cancelled(everywhere, "staying", 1)
