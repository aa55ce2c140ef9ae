"""Jobs of SageMaker: unmodified boto3, containers as namespaces, and what goes wrong."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import ROOT, refuse
from tests.end_to_end.user import commands
from tests.servers.sagemaker import PROFILE, TrainingService, serving
from tests.submissions.waiting import wait_for

pytestmark = pytest.mark.process
JOB: dict[str, Any] = {
    "name": "job",
    # Ranks of torchrun import torch first.
    "launcher": "spawn",
    "resources": {"nodes": 2, "cpus_per_task": 1, "time": "5m"},
}


class Desk(NamedTuple):
    """A folder with a job, the commands of its user, and the service."""

    folder: Path
    service: TrainingService

    def hpctrain(self, *words: str) -> subprocess.CompletedProcess[str]:
        home = {"HOME": str(self.folder), "PYTHONPATH": str(ROOT)}
        return commands().run(words, {**os.environ, **home}, self.folder)

    def submit(self, *command: str, site: str = PROFILE) -> subprocess.CompletedProcess[str]:
        (self.folder / "sagemaker.yaml").write_text(site)
        (self.folder / "job.yaml").write_text(json.dumps({**JOB, "command": command}))
        return self.hpctrain("submit", "job.yaml", "--site", "./sagemaker.yaml")

    def run(self) -> dict[str, Any]:
        done = self.hpctrain("status", "job", "--json")
        assert done.returncode in (0, 1), done.stderr
        (run,) = json.loads(done.stdout)["runs"]
        assert isinstance(run, dict)
        return run

    def end(self) -> dict[str, Any]:
        """Wait for the end of the run, and for its last lines."""
        wait_for(self._has_ended, every_s=0.3)
        return self.run()

    def _has_ended(self) -> bool:
        self.run()
        return json.loads(self.path("submission.json").read_text()).get("state") is not None

    def path(self, name: str) -> Path:
        (folder,) = (path for path in (self.folder / "results/job").iterdir() if path.is_dir())
        return folder / name

    def log(self, name: str) -> str:
        return self.path(f"logs/{name}").read_text()

    def creations(self) -> int:
        return self.service.calls.count("CreateTrainingJob")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    if os.geteuid() != 0 or shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        refuse("needs root and ip")
    with serving(tmp_path / "aws", monkeypatch) as service:
        work = tmp_path / "work"
        work.mkdir()
        yield Desk(work, service)
    assert not list(Path("/run/netns").glob("sagemaker-*"))


def test_two_hosts_train_and_a_report_reads_their_logs(desk: Desk, torch: None) -> None:
    options = ["--data", "digits", "--global-batch-size", "128", "--epochs", "1"]
    done = desk.submit("python", "-m", "hpc_train.trainer.train", *options)
    assert done.returncode == 0, done.stderr
    run = desk.end()
    assert (run["state"], run["nodes"]) == ("COMPLETED", "algo-1,algo-2")
    assert '"world_size":2' in desk.log("rank-0.out")
    assert '"node":"algo-2"' in desk.log("rank-1.out")
    report = desk.hpctrain("report", "job")
    assert "one size (2 nodes, 2 ranks), n=1, 1 of 1 runs ok" in report.stdout, report.stderr
    assert desk.service.calls.count("DescribeTrainingJob") <= 2
    # What has ended is not asked about again.
    before = len(desk.service.calls)
    assert desk.run()["state"] == "COMPLETED"
    assert len(desk.service.calls) == before


def test_the_host_that_failed_is_named(desk: Desk) -> None:
    (desk.folder / "data.txt").write_text("of the folder\n")
    program = "echo $SM_HOSTS; cat data.txt; sleep $((NODE_RANK == 1 ? 0 : 600)); exit 7"
    assert desk.submit("bash", "-c", program).returncode == 0
    run = desk.end()
    assert (run["state"], run["problem"]) == ("FAILED", "a rank on algo-2: exit code 7")
    assert desk.log("node-1.out") == '["algo-1", "algo-2"]\nof the folder\n'


def test_an_answer_that_is_lost_is_not_a_second_job(desk: Desk) -> None:
    desk.service.faults["lost"] = 1
    done = desk.submit("true")
    assert done.returncode == 0, done.stderr
    assert (desk.creations(), len(desk.service.jobs)) == (2, 1)
    assert desk.end()["state"] == "COMPLETED"


def test_a_running_job_is_stopped_and_its_ranks_are_told(desk: Desk) -> None:
    program = 'trap "echo saved; exit 0" TERM; echo begun; sleep 600 & wait'
    assert desk.submit("bash", "-c", program).returncode == 0
    wait_for(lambda: "begun" in desk.hpctrain("logs", "job").stdout)
    assert desk.run()["state"] == "RUNNING"
    assert desk.hpctrain("cancel", "job").returncode == 0
    assert desk.run()["state"] == "CANCELLED"
    (output,) = desk.service.folder.glob("*/algo-2/output")
    wait_for(lambda: "saved" in output.read_text())


SPOT = PROFILE.replace("  image:", "  spot: true\n  image:")
RESUMES = 'f=$HPCTRAIN_CHECKPOINTS/$NODE_RANK; cat "$f" && exit; echo saved >"$f"; '


def test_a_job_on_spare_capacity_goes_on(desk: Desk) -> None:
    desk.service.faults["interrupt"] = 1
    done = desk.submit("bash", "-c", f"{RESUMES}sleep 600", site=SPOT)
    assert done.returncode == 0, done.stderr
    assert desk.end()["state"] == "COMPLETED"
    assert "hpctrain: restart" in desk.log("node-0.out")
    assert desk.log("node-0.out").endswith("saved\n")
