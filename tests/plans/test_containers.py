"""A job's image under each runtime: argv, what is passed on, and what is refused with its line."""

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import ContainerPlan, LaunchPlan
from tests.plans.conftest import Jobs, Sites
from tests.plans.launchers.made import words

IMAGE = {"image": "/i/t.sif", "mounts": ["/data:/in:ro"], "env": ["WANDB_MODE"]}


@pytest.fixture
def boxed(job: Jobs, slurm: Sites) -> Callable[..., LaunchPlan]:
    def make(
        runtime: str = "apptainer",
        box: dict[str, Any] | None = None,
        site: dict[str, Any] | None = None,
        **keys: Any,
    ) -> LaunchPlan:
        resources = keys.pop("resources", {"tasks_per_node": 2})
        env = keys.pop("env", {"A": "1"})
        keys = {"env": env, "container": {**IMAGE, **(box or {})}, **keys}
        profile = {"containers": {"runtime": runtime, "args": ["--x"]}, **(site or {})}
        return make_plan(job(resources, **keys), slurm(**profile))

    return make


@pytest.mark.parametrize(
    ("gpu_type", "flag"),
    [("a100", "--nv"), (None, "--nv"), ("mi250x", "--rocm"), ("AMD", "--rocm")],
)
def test_the_flag_of_the_gpus_maker(
    boxed: Callable[..., LaunchPlan], gpu_type: str | None, flag: str
) -> None:
    partition = {"name": "g", "default": True, "gpu_type": gpu_type, "cpus_per_gpu": 1}
    plan = boxed(site={"partitions": [partition]}, resources={"gpus_per_node": 2})
    assert f"apptainer exec {flag} --bind" in words(plan.launch)


def test_podman_is_told_every_name(boxed: Callable[..., LaunchPlan]) -> None:
    plan = boxed("podman-hpc", resources={"gpus_per_node": 2})
    text = words(plan.launch)
    assert "podman-hpc run --rm --net=host --ipc=host --pid=host --gpu --volume $HPCTRAIN" in text
    for name in ("RANK", "LOCAL_RANK", "SLURM_*", "A", "WANDB_MODE", "MASTER_ADDR"):
        assert f"--env {name} " in text
    assert text.endswith("--x /i/t.sif python t.py")


def test_shifter_shows_no_secret_on_its_command_line(boxed: Callable[..., LaunchPlan]) -> None:
    plan = boxed("shifter", secrets={"HF_TOKEN": "env"})
    assert "HF_TOKEN" not in words(plan.launch)
    assert "HF_TOKEN" in box_of(plan).passed


def box_of(plan: LaunchPlan) -> ContainerPlan:
    assert plan.container
    return plan.container


def test_the_plug_in_of_mpi_is_that_of_the_image(
    boxed: Callable[..., LaunchPlan], job: Jobs, slurm: Sites
) -> None:
    launchers = {"default": "srun", "allowed": ["srun"], "mpi": "cray_shasta"}
    containers = {"runtime": "apptainer", "mpi": "pmi2", "setup": ["module load apptainer"]}
    plan = boxed(site={"launchers": launchers, "containers": containers}, setup=["echo"], mpi=True)
    assert "--mpi=pmi2" in words(plan.launch)
    assert plan.setup == ("module load apptainer", "echo")
    assert plan.settings["setup.0"].value == "module load apptainer"
    assert plan.settings["container.image"].value == "/i/t.sif"
    bare = make_plan(job(mpi=True), slurm(launchers=launchers, containers=containers))
    assert "--mpi=cray_shasta" in words(bare.launch)
    outside = boxed(site={"launchers": launchers}, mpi=True)
    assert "--mpi=cray_shasta" in words(outside.launch)


def test_mounts_of_the_site_and_nccls_topology_come_along(
    boxed: Callable[..., LaunchPlan],
) -> None:
    plan = boxed(
        site={"containers": {"runtime": "apptainer", "mounts": ["/scratch"]}},
        env={"NCCL_TOPO_FILE": "/opt/ndv5 topo.xml"},
    )
    assert (
        "--bind /scratch:/scratch --bind /opt/ndv5 topo.xml:/opt/ndv5 topo.xml:ro --bind /data"
        in (words(plan.launch))
    )


@pytest.mark.parametrize(
    ("runtime", "mount", "said"),
    [
        ("pyxis", "/a b:/c", "pyxis does not accept ' ' in a path: '/a b'"),
        ("pyxis", "/a:/b,c", "pyxis does not accept ',' in a path: '/b,c'"),
        ("apptainer", "/a,b", "apptainer does not accept ',' in a path"),
        ("shifter", "/a;b", "shifter does not accept ';' in a path"),
        ("edf", "/a:/b:c", "'/a:/b:c' is not a mount"),
        ("apptainer", "/a:/b:/c:/d", "'/a:/b:/c:/d' is not a mount; write PATH, SOURCE:TARGET"),
        ("apptainer", "/a:/b:rx", "'/a:/b:rx' is not a mount"),
        ("apptainer", "data:/in", "'data' must be a whole path, from / on"),
        ("apptainer", "/s/$USER:/in", r"'/s/$USER': no shell expands it"),
    ],
)
def test_a_mount_that_cannot_be_is_refused_with_its_line(
    boxed: Callable[..., LaunchPlan], runtime: str, mount: str, said: str
) -> None:
    with pytest.raises(PlanError) as failure:
        boxed(runtime, {"mounts": [mount]})
    assert failure.value.message.startswith(f"job.yaml:1: {said}")


@pytest.mark.parametrize("launcher", ["mpirun", "single"])
def test_slurm_opens_images_for_its_own_steps_only(
    boxed: Callable[..., LaunchPlan], launcher: str
) -> None:
    with pytest.raises(PlanError, match=f"pyxis opens images through srun, .* {launcher} does"):
        boxed("pyxis", launcher=launcher, resources={})


def test_what_a_runtime_has_not(boxed: Callable[..., LaunchPlan], job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match="shifter has no writable images"):
        boxed("shifter", {"writable": True})
    with pytest.raises(PlanError, match="'w' must be a whole path"):
        boxed(box={"workdir": "w"})
    with pytest.raises(PlanError, match=r"pyxis does not accept ',' in a path: '/a,b'"):
        boxed("pyxis", workdir="/a,b")
    with pytest.raises(PlanError, match=r"job\.yaml:1: big states no container runtime") as failure:
        make_plan(job(container=IMAGE), slurm())
    assert "runtime: apptainer" in failure.value.hint


@pytest.fixture
def command(job: Jobs, slurm: Sites) -> Callable[..., str]:
    def make(folder: str, **containers: Any) -> str:
        env = {"HPCTRAIN_CHECKPOINTS": folder}
        return words(
            make_plan(job(env=env, container={"image": "pt"}), slurm(containers=containers)).launch
        )

    return make


@pytest.mark.parametrize("runtime", ["podman-hpc", "apptainer", "pyxis", "shifter"])
@pytest.mark.parametrize(("mounts", "own"), [((), True), (["/data"], True), (["/scratch"], False)])
def test_checkpoints_are_not_written_into_the_image(
    command: Callable[..., str], runtime: str, mounts: list[str], own: bool
) -> None:
    there = "/scratch/me/ckpt:/scratch/me/ckpt" in command(
        "/scratch/me/ckpt", runtime=runtime, mounts=mounts
    )
    assert there == (own and runtime != "shifter")


def test_checkpoints_have_one_path(command: Callable[..., str]) -> None:
    """The script of the job reads their step outside."""
    with pytest.raises(PlanError, match="/ckpt/a is /scratch/me on the host") as error:
        command("/ckpt/a", runtime="podman-hpc", mounts=["/scratch/me:/ckpt"])
    assert error.value.hint == "mount it at its own path, and name that: /scratch/me"
