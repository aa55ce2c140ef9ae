"""Jobs on the SageMaker of the lab: unmodified boto3, containers as namespaces, and faults."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.lab.sagemaker.faults import FILE, KNOWN
from hpc_train.lab.sagemaker.start_and_stop import FOLDER, read
from tests.conftest import refuse
from tests.lab.training_desk import Desk
from tests.pipeline.waiting import wait_for

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    pytest.importorskip("boto3")
    if os.geteuid() != 0 or shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        refuse("needs root and ip")
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment.pop("XDG_CONFIG_HOME", None)
    desk = Desk(home, environment)
    done = desk.hpctrain("lab", "up", "--sagemaker")
    assert done.returncode == 0, done.stderr
    text = Path(FOLDER, "env").read_text()
    environment |= dict(re.findall(r"(AWS_\w+)=(\S+)", text))
    yield environment
    done = desk.hpctrain("lab", "down", "--sagemaker")
    assert done.stdout == f"the SageMaker in {FOLDER} was stopped\n", done.stderr
    assert (read(), Path(FOLDER).exists()) == (None, False)
    assert namespaces() == []


@pytest.fixture
def desk(lab: dict[str, str], tmp_path: Path) -> Iterator[Desk]:
    (Path(FOLDER) / FILE).unlink(missing_ok=True)
    calls = Path(FOLDER, "service.out")
    calls.write_text("")
    yield Desk(tmp_path, lab)
    # Nothing is left running.
    wait_for(lambda: namespaces() == [])


def namespaces() -> list[str]:
    return [path.name for path in Path("/run/netns").glob("sagemaker-*")]


def faults(**counts: int) -> None:
    assert set(counts) <= set(KNOWN)
    (Path(FOLDER) / FILE).write_text(json.dumps(counts))


def calls(name: str) -> list[str]:
    """Return the statuses that the service answered to a call."""
    return re.findall(rf"^\S*{name} (\d+)$", Path(FOLDER, "service.out").read_text(), re.M)


@pytest.mark.parametrize("launcher", [pytest.param("torchrun", marks=pytest.mark.long), "spawn"])
def test_two_hosts_train_and_a_report_reads_their_logs(desk: Desk, launcher: str) -> None:
    options = ["--data", "digits", "--global-batch-size", "128", "--epochs", "1"]
    command = ["python", "-m", "hpc_train.workload.train", *options]
    done = desk.submit(command, launcher=launcher)
    assert done.returncode == 0, done.stderr
    run = desk.end()
    assert run["state"] == "COMPLETED"
    assert desk.file("status.json")["nodes"] == "algo-1,algo-2"
    assert desk.file("bill.json")["instances"] == 2
    assert '"world_size":2' in desk.log("rank-0.out")
    assert '"node":"algo-2"' in desk.log("rank-1.out")
    report = desk.hpctrain("report", "job")
    assert "1 of 1 runs ok; 2 nodes" in report.stdout, report.stderr
    assert len(calls("DescribeTrainingJob")) <= 2
    # What has ended is not asked about again.
    before = len(calls("ListTrainingJobs"))
    assert desk.run()["state"] == "COMPLETED"
    assert len(calls("ListTrainingJobs")) == before


PROBE = "echo $NODE_RANK $WORLD_SIZE; echo $SM_HOSTS $SM_NUM_CPUS; ls; cat data.txt"


def test_a_job_has_its_code_and_the_names_of_the_toolkit(desk: Desk) -> None:
    (desk.folder / "data.txt").write_text("of the folder\n")
    assert desk.submit(["bash", "-c", PROBE]).returncode == 0
    assert desk.end()["state"] == "COMPLETED"
    text = desk.log("node-1.out")
    assert '["algo-1", "algo-2"]' in text
    assert text.endswith("of the folder\n")


def test_the_host_that_failed_is_named(desk: Desk) -> None:
    command = ["bash", "-c", 'sleep $((NODE_RANK == 1 ? 0 : 600)); echo "no data" >&2; exit 7']
    assert desk.submit(command).returncode == 0
    run = desk.end()
    assert run["state"] == "FAILED"
    assert run["problem"] == "a rank on algo-2: exit code 7"
    assert desk.log("node-1.out") == "no data\n"


def test_an_answer_that_is_lost_is_not_a_second_job(desk: Desk) -> None:
    faults(lost_answer=1)
    done = desk.submit(["true"])
    assert done.returncode == 0, done.stderr
    assert calls("CreateTrainingJob") == ["400"]
    assert desk.end()["state"] == "COMPLETED"


def test_throttled_calls_are_repeated(desk: Desk) -> None:
    faults(throttle_create=2, throttle_list=2)
    assert desk.submit(["true"]).returncode == 0
    assert calls("CreateTrainingJob") == ["400", "400", "200"]
    assert desk.end()["state"] == "COMPLETED"


def test_a_role_of_another_account_is_refused_before_the_upload(desk: Desk) -> None:
    home = Path(desk.environment["HOME"], ".config", "hpctrain", "sagemaker.yaml")
    (desk.folder / "sagemaker.yaml").write_text(home.read_text().replace("::123", "::923"))
    done = desk.submit(["true"], "--site", "./sagemaker.yaml")
    assert done.returncode == 2, done.stdout
    assert "sagemaker.role is one of the account 923456789012" in done.stderr
    assert Path(FOLDER, "service.out").read_text() == "/ 200\n"
    assert not (desk.folder / "results" / "job").exists()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no_quota", "job.yaml:1: the quota of the account: The account-level service limit"),
        ("no_role", "sagemaker.yaml:10: sagemaker.role: Could not assume role"),
        ("name_taken", "exists already"),
        pytest.param(
            "throttle_create", "AWS refuses so many calls: Rate exceeded", marks=pytest.mark.long
        ),
    ],
)
def test_what_is_refused_leaves_nothing(desk: Desk, fault: str, message: str) -> None:
    faults(**{fault: 99})
    done = desk.submit(["true"])
    assert done.returncode in (1, 2), done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (desk.folder / "results" / "job").exists()


def test_no_capacity_is_no_failure_of_the_program(desk: Desk) -> None:
    faults(capacity=1)
    assert desk.submit(["true"]).returncode == 0
    run = desk.end()
    assert run["state"] == "NODE_FAIL"
    assert run["problem"].startswith("CapacityError: Unable to provision")
    retried = desk.hpctrain("retry", "job")
    assert retried.returncode == 0, retried.stderr


def test_a_job_is_stopped_while_it_downloads(desk: Desk) -> None:
    faults(slow_download=1)
    assert desk.submit(["true"]).returncode == 0
    wait_for(lambda: "downloaded" in str(desk.run()))
    done = desk.hpctrain("cancel", "job")
    assert done.returncode == 0, done.stderr
    assert desk.run()["state"] == "CANCELLED"


def test_a_running_job_is_stopped_and_its_ranks_are_told(desk: Desk) -> None:
    command = ["bash", "-c", 'trap "echo saved; exit 0" TERM; echo begun; sleep 600 & wait']
    assert desk.submit(command).returncode == 0
    wait_for(lambda: "begun" in desk.hpctrain("logs", "job").stdout)
    assert desk.run()["state"] == "RUNNING"
    assert desk.hpctrain("cancel", "job").returncode == 0
    assert desk.run()["state"] == "CANCELLED"
    output = Path(FOLDER, "jobs", desk.file("submission.json")["native_id"].partition("/")[2])
    wait_for(lambda: "saved" in (output / "algo-2" / "output-1").read_text())


def test_tokens_that_end_early_lose_no_line(desk: Desk) -> None:
    faults(old_token=1, empty_page=2)
    assert desk.submit(["bash", "-c", "seq 700"]).returncode == 0
    assert desk.end()["state"] == "COMPLETED"
    expected = "".join(f"{number}\n" for number in range(1, 701))
    assert [desk.log(f"node-{host}.out") for host in (0, 1)] == [expected, expected]


def test_a_job_on_spare_capacity_goes_on(desk: Desk) -> None:
    profile = Path(desk.environment["HOME"], ".config/hpctrain/sagemaker.yaml").read_text()
    changed = profile.replace("  image:", "  spot: true\n  image:")
    (desk.folder / "sagemaker.yaml").write_text(changed)
    faults(interrupt=1)
    command = 'f=$HPCTRAIN_CHECKPOINTS/$NODE_RANK; cat "$f" && exit; echo saved >"$f"; sleep 600'
    done = desk.submit(["bash", "-c", command], "--site", "./sagemaker.yaml")
    assert done.returncode == 0, done.stderr
    assert desk.end()["state"] == "COMPLETED"
    assert "hpctrain: restart" in desk.log("node-0.out")
    assert desk.log("node-0.out").endswith("saved\n")


def test_a_retry_goes_on_from_the_checkpoints_of_the_job_that_failed(desk: Desk) -> None:
    profile = Path(desk.environment["HOME"], ".config/hpctrain/sagemaker.yaml").read_text()
    changed = profile.replace("  image:", "  spot: true\n  image:")
    (desk.folder / "sagemaker.yaml").write_text(changed)
    command = 'f=$HPCTRAIN_CHECKPOINTS/$NODE_RANK; cat "$f" && exit; echo saved >"$f"; exit 7'
    done = desk.submit(["bash", "-c", command], "--site", "./sagemaker.yaml")
    assert done.returncode == 0, done.stderr
    assert desk.end()["state"] == "FAILED"
    first = desk.path("")
    done = desk.hpctrain("retry", "job", "--wait")
    assert done.returncode == 0, done.stderr
    (second,) = (path for path in first.parent.iterdir() if path.is_dir() and path != first)
    assert (second / "logs" / "node-1.out").read_text() == "saved\n"


def test_a_dry_run_bounds_the_cost_and_asks_only_for_the_account(desk: Desk) -> None:
    done = desk.submit(["true"], "--dry-run")
    assert done.returncode == 0, done.stderr
    assert '"TrainingJobName": "hpct-job-run"' in done.stdout
    assert "cost: 1 run: at most no GPUs" in done.stderr
    # GetCallerIdentity, of STS.
    assert Path(FOLDER, "service.out").read_text().split() == ["/", "200"]
