"""From job and profile to the request, and what is refused before it is sent."""

import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import PlanError, SiteProfileError, StoreError, SubmitError
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.sagemaker import submit_jobs
from hpc_train.sagemaker.submit_jobs import SageMakerExecutor, pack
from hpc_train.sagemaker.training_job import job_name, training_job
from tests.sagemaker.jobs import ROLE, job, site

pytest.importorskip("botocore")

IMAGE_FILE = (("  bucket", "  image: torch.sqsh\n  bucket"),)
SPOT = (("  bucket", "  spot: true\n  max_wait: 2h\n  bucket"),)


def request(folder: Path, *settings: str, **how: Any) -> dict[str, Any]:
    found = job(folder, *settings, **how).request
    assert found is not None
    return found


def test_the_request_of_a_job(tmp_path: Path) -> None:
    found = request(tmp_path)
    assert found["TrainingJobName"] == "hpct-resnet-50-a-run"
    assert found["RoleArn"] == ROLE
    assert found["AlgorithmSpecification"] == {
        "TrainingImage": "registry/pytorch:2.8",
        "TrainingInputMode": "File",
        "ContainerEntrypoint": ["/bin/bash"],
        "ContainerArguments": ["/opt/ml/input/data/hpctrain/job.sh"],
    }
    assert found["ResourceConfig"] == {
        "InstanceType": "ml.g5.12xlarge",
        "InstanceCount": 2,
        "VolumeSizeInGB": 30,
    }
    assert found["StoppingCondition"] == {"MaxRuntimeInSeconds": 3600}
    channels = {
        one["ChannelName"]: one["DataSource"]["S3DataSource"]["S3Uri"]
        for one in found["InputDataConfig"]
    }
    folder = "s3://my-bucket/hpctrain"
    assert channels == {
        "hpctrain": f"{folder}/hpct-resnet-50-a-run/input/",
        "code": f"{folder}/code/run/",
    }
    assert "EnableManagedSpotTraining" not in found


def test_spare_capacity_has_checkpoints_and_a_longest_wait(tmp_path: Path) -> None:
    found = request(tmp_path, change=SPOT)
    assert found["EnableManagedSpotTraining"] is True
    assert found["StoppingCondition"]["MaxWaitTimeInSeconds"] == 7200
    assert found["CheckpointConfig"]["S3Uri"].endswith("/hpct-resnet-50-a-run/checkpoints")


def test_without_a_longest_wait_spare_capacity_waits_as_long_as_the_job_may_run(
    tmp_path: Path,
) -> None:
    keys = "  spot: true\n  bucket"
    found = request(tmp_path, change=(("  bucket", keys),))
    limits = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 3600}
    assert found["StoppingCondition"] == limits


def test_a_job_gets_the_gpus_and_cores_of_its_instances(tmp_path: Path) -> None:
    plan = job(tmp_path).plan
    assert (plan.topology.gpus_per_node, plan.topology.tasks_per_node) == (4, 4)
    assert plan.topology.cpus_per_task == 12


def test_the_service_accepts_the_request(tmp_path: Path) -> None:
    point = job(tmp_path, change=SPOT)
    code = training_job(
        point.plan,
        site(tmp_path, *SPOT),
        mark="0123456789ab",
        code="0123456789abcdef",
    )
    import botocore.session
    from botocore.validate import ParamValidator

    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateTrainingJob").input_shape
    assert ParamValidator().validate(code, shape).generate_report() == ""


@pytest.mark.parametrize("name", ["a" * 80, "x_y.z", "-", "ä", "a--b", "1"])
def test_a_name_of_a_job_is_one_of_the_service(name: str) -> None:
    import re

    found = job_name(name, "0123456789ab")
    assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", found)
    assert len(found) <= 63


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        (("launcher=srun",), (), "does not offer srun: SageMaker has no srun; allowed: torchrun"),
        (("launcher=mpirun",), (), "does not offer mpirun: it starts ranks through ssh"),
        (("secrets={TOKEN: env}",), (), "AWS forbids secrets in the request"),
        (("container.mounts=[/data]",), (), "container.mounts: SageMaker starts the image without"),
        (("container=null",), (), "the job names no image"),
        (("container.image=docker://ubuntu",), (), "'docker://ubuntu' is not a name in one"),
        (("container=null",), IMAGE_FILE, "aws.yaml:8: sagemaker.image: SageMaker pulls images"),
        (("resources.nodes=5",), (), "resources.nodes"),
    ],
)
def test_what_a_job_cannot_have(
    tmp_path: Path, settings: tuple[str, ...], change: Any, message: str
) -> None:
    with pytest.raises(PlanError) as failure:
        job(tmp_path, *settings, change=change)
    assert message in failure.value.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sagemaker:\n", "slurm_conf: x\nunused:\n", "unused"),
        ("eu-west-1", "eu_west", "sagemaker.region"),
        (f"{ROLE}", "training", "sagemaker.role"),
        ("s3://my-bucket", "my-bucket", "sagemaker.bucket"),
        ("  bucket", "  max_wait: 1h\n  bucket", "max_wait is for spare capacity only"),
        ("  bucket", "  inputs: {code: s3://abc}\n  bucket", "the channel 'code' is for hpctr"),
        ("  bucket", "  inputs: {x: s3://a}\n  bucket", "inputs.x: 's3://a' is not valid: s3://BU"),
        ("ml.g5", "g5", "training jobs; did you mean 'ml.g5.12xlarge'?"),
        ("[torchrun, single", "[torchrun, mpirun", "launchers.allowed: mpirun: it starts ranks"),
        ("torchrun, allowed: [torchrun", "srun, allowed: [srun", "srun: SageMaker has no srun"),
    ],
)
def test_a_wrong_profile(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SiteProfileError, match=r"aws\.yaml:\d") as failure:
        site(tmp_path, (old, new))
    assert message in failure.value.message


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("launcher=spawn",),
        ("launcher=single", "resources.nodes=1", "resources.tasks_per_node=1"),
    ],
)
def test_the_script_is_sound(tmp_path: Path, settings: tuple[str, ...]) -> None:
    path = tmp_path / "job.sh"
    path.write_text(job(tmp_path, *settings).script.text)
    for command in (["bash", "-n", str(path)], ["shellcheck", str(path)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = (
        "train.py",
        "lib/model.py",
        ".git/config",
        "lib/__pycache__/model.pyc",
        "env/pyvenv.cfg",
        "env/bin/python",
        "results/a/run.json",
        ".hidden/settings",
    )
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "run.sh").touch(mode=0o755)
    (tmp_path / "link.py").symlink_to("train.py")
    (tmp_path / "dangling").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def members(content: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return {one.name: one for one in archive.getmembers()}


def test_sources_without_results_and_environments(folder: Path) -> None:
    found = members(pack(folder, folder / "results").content)
    names = [".hidden/settings", "lib/model.py", "link.py", "run.sh", "train.py"]
    assert sorted(found) == names
    assert found["run.sh"].mode == 0o755
    assert found["link.py"].isfile()


def test_the_same_files_are_the_same_bytes(folder: Path) -> None:
    first = pack(folder, folder / "results")
    os.utime(folder / "train.py", (1, 1))
    assert pack(folder, folder / "results") == first
    (folder / "train.py").write_text("other")
    assert pack(folder, folder / "results").digest != first.digest


def test_data_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submit_jobs, "MOST_BYTES", 1 << 20)
    (folder / "data.bin").write_bytes(bytes(2 << 20))
    with pytest.raises(StoreError, match=r"more than 1 MiB, the last file is data\.bin") as failure:
        pack(folder, folder / "results")
    assert "sagemaker.inputs" in failure.value.hint


def test_a_job_may_run_for_28_days(tmp_path: Path) -> None:
    found = request(tmp_path, "resources.time=28d")
    assert found["StoppingCondition"] == {"MaxRuntimeInSeconds": 28 * 86_400}


def test_no_host_can_be_left_out(tmp_path: Path) -> None:
    options = ExecutorOptions(exclude=("algo-1",))
    with pytest.raises(SubmitError, match="AWS chooses the hosts of a job; algo-1 cannot be left"):
        SageMakerExecutor().ready(tmp_path, [], options)
