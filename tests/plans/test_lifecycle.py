"""The end before the work is done: who gets the signal, and what is queued again."""

from typing import Any

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced
from hpc_train.jobs.job import JobLifecycle
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import JobVar
from hpc_train.scripts.render import render_script
from hpc_train.sites.profile import SiteProfile
from tests.plans.conftest import Jobs, Sites

LAUNCHERS = ["srun", "torchrun", "mpirun", "ibrun", "accelerate", "deepspeed", "spawn", "single"]
OFFERED = {"launchers": {"default": "srun", "allowed": LAUNCHERS}}
LEAD = {"signal_before_end": "2m"}


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "accelerate", "deepspeed", "spawn"])
def test_slurm_signals_the_ranks_that_it_knows(job: Jobs, slurm: Sites, launcher: str) -> None:
    plan = make_plan(job({"nodes": 2}, launcher=launcher, **LEAD), slurm(**OFFERED))
    assert dict(plan.directives)["signal"] == "USR1@120"
    assert not plan.passes_signal


@pytest.mark.parametrize("launcher", ["mpirun", "single"])
def test_the_script_passes_on_what_slurm_cannot_bring(
    job: Jobs, slurm: Sites, launcher: str
) -> None:
    plan = make_plan(job(launcher=launcher, **LEAD), slurm(**OFFERED))
    assert dict(plan.directives)["signal"] == "B:USR1@120"
    assert plan.passes_signal


@pytest.mark.parametrize(
    ("resources", "keys", "message"),
    [
        ({"time": "2m"}, {}, "at most 119 s (the time limit is 00:02:00)"),
        ({}, {"signal_before_end": "1d"}, "at most 65535 s"),
        ({}, {"launcher": "ibrun"}, "which signals ibrun forwards"),
    ],
)
def test_what_cannot_be(
    job: Jobs, slurm: Sites, resources: dict[str, Any], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError) as failure:
        make_plan(job(resources, **{**LEAD, **keys}), slurm(**OFFERED))
    assert failure.value.message.startswith("job.yaml:1: ")
    assert message in failure.value.message


def test_a_run_of_several_in_one_allocation(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match="needs a time limit of the run's own"):
        make_plan(job({"time": "1h"}, **LEAD), slurm(), nested=True)


def test_no_scheduler_sends_none(job: Jobs, local: Sourced[SiteProfile]) -> None:
    plan = make_plan(job(**LEAD), local)
    assert any("local sends no signal" in text for text in plan.warnings)
    assert plan.directives == ()


SITE_LEAD = {"lifecycle": {"signal_lead": "5m"}}


def test_a_job_that_queues_itself_again_takes_the_lead_of_its_site(job: Jobs, slurm: Sites) -> None:
    plan = make_plan(job({"time": "1h"}, lifecycle={}), slurm(**OFFERED, **SITE_LEAD))
    assert dict(plan.directives)["signal"] == "USR1@300"
    assert plan.settings["signal_before_end"].why.startswith("the site recommends it")
    assert plan.warnings == ()
    # Neither against the job's own key, nor for one that ends at its limit.
    own = make_plan(job({"time": "1h"}, lifecycle={}, **LEAD), slurm(**OFFERED, **SITE_LEAD))
    assert dict(own.directives)["signal"] == "USR1@120"
    assert "signal" not in dict(make_plan(job(), slurm(**OFFERED, **SITE_LEAD)).directives)


@pytest.mark.parametrize("limit", ["1h", "4m"])
def test_without_a_signal_the_time_limit_is_the_end(job: Jobs, slurm: Sites, limit: str) -> None:
    site = slurm(**OFFERED, **(SITE_LEAD if limit == "4m" else {}))
    plan = make_plan(job({"time": limit}, lifecycle={}), site)
    (warning,) = (text for text in plan.warnings if "signal_before_end: 5m" in text)
    assert warning.startswith("job.yaml:1: the time limit ends the job without a warning")


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "ibrun", "single"])
def test_a_file_asks_the_ranks_of_any_launcher(job: Jobs, slurm: Sites, launcher: str) -> None:
    asked = job(launcher=launcher, lifecycle={"stop_by": "file"}, **LEAD)
    plan = make_plan(asked, slurm(**OFFERED))
    assert dict(plan.directives)["signal"] == "B:USR1@120"
    assert not plan.passes_signal
    text = render_script(plan).text
    assert "hpctrain_usr1=file" in text
    assert "usr1" not in render_script(make_plan(job(lifecycle={}), slurm(**OFFERED))).text


LOCAL = "/dev/shm/mine"  # noqa: S108  # named, not used


def test_slurm_queues_it_again_too(job: Jobs, slurm: Sites) -> None:
    plan = make_plan(job(lifecycle={}), slurm())
    assert ("requeue", "") in plan.directives
    assert plan.lifecycle == JobLifecycle(requeue_on=(75,), max_restarts=10, max_stalled=2)
    assert plan.settings["lifecycle.max_restarts"].value == 10


@pytest.mark.parametrize(
    ("lifecycle", "more"),
    [
        ({}, set()),
        ({"stop_by": "file"}, {"HPCTRAIN_STOP_FILE"}),
    ],
)
def test_ranks_on_other_nodes_and_in_images_have_its_variables(
    job: Jobs, slurm: Sites, lifecycle: dict[str, Any], more: set[str]
) -> None:
    """Mpirun passes only the variables that are named, and an image may override the rest."""
    always = {"HPCTRAIN_CHECKPOINTS", "HPCTRAIN_STOP_AT_TERM"}
    spec = {"launcher": "mpirun", "lifecycle": lifecycle}
    argv = make_plan(job({"nodes": 2}, **spec), slurm()).launch.argv
    words = [getattr(token, "text", "") for token in argv]
    passed = {words[at + 1] for at, word in enumerate(words) if word == "-x"}
    assert passed >= always | more
    site = slurm(containers={"runtime": "pyxis"})
    image = make_plan(job(container={"image": "x.sqsh"}, lifecycle=lifecycle), site).launch
    (option,) = (one for one in map(str, image.argv) if "--container-env=" in one)
    assert all(name in option for name in always | more)
    plain = make_plan(job({"nodes": 2}, launcher="mpirun"), slurm()).launch.argv
    assert not any("HPCTRAIN_CHECKPOINTS" in str(token) for token in plain)


@pytest.mark.parametrize(
    ("resources", "keys", "message"),
    [
        pytest.param(
            {},
            {"launcher": "torchrun", "elastic": {"max_restarts": 3}},
            "torchrun would start ranks again that saved a checkpoint",
            id="elastic",
        ),
        pytest.param(
            {"nodes": 2},
            {"env": {"HPCTRAIN_CHECKPOINTS": LOCAL}},
            f"{LOCAL} is on each node's own disk (/dev/shm), and a checkpoint of 2 nodes is one",
            id="node-local",
        ),
        pytest.param(
            {},
            {"directives": {"requeue": False}},
            "with directives.requeue: false Slurm never queues the job again",
            id="requeue-off",
        ),
    ],
)
def test_another_part_of_the_job_contradicts_it(
    job: Jobs, slurm: Sites, resources: dict[str, Any], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError) as failure:
        make_plan(job(resources, **{"lifecycle": {}, **keys}), slurm())
    assert failure.value.message.startswith("job.yaml:")
    assert message in failure.value.message
    assert failure.value.hint


def test_a_folder_that_the_next_job_or_another_node_would_not_find_is_refused(
    job: Jobs, slurm: Sites
) -> None:
    """Also that of a chain of jobs, which have no `lifecycle`."""
    disk = {"bb": {"path": "/mnt/bb/$USER", "node_local": True}}
    for folder, site in ((LOCAL, slurm()), ("/mnt/bb/me/ckpt", slurm(storage=disk))):
        with pytest.raises(PlanError, match="is on each node's own disk"):
            make_plan(job({"nodes": 2}, env={"HPCTRAIN_CHECKPOINTS": folder}), site)
    for folder in ("$SCRATCH/ckpt", "~/ckpt"):
        with pytest.raises(PlanError, match="values of env are passed unchanged") as failure:
            make_plan(job(env={"HPCTRAIN_CHECKPOINTS": folder}), slurm())
        assert failure.value.hint == "write the whole path, such as /scratch/me/ckpt"
    with pytest.raises(PlanError, match="HPCTRAIN_CHECKPOINTS is empty"):
        make_plan(job(env={"HPCTRAIN_CHECKPOINTS": ""}), slurm())


def test_neither_a_nested_run_nor_a_plain_script_is_queued_again(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match="placement nested has no job of its own"):
        make_plan(job(lifecycle={}), slurm(), nested=True)
    with pytest.raises(PlanError, match="does not track its restarts"):
        make_plan(job(lifecycle={}), slurm(), plain=True)


@pytest.mark.parametrize(
    ("torch", "names"),
    [
        ("2.9", ("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE")),
        ("2.8", ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")),
        (None, ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")),
    ],
)
def test_the_last_operations_of_nccl_are_kept(
    job: Jobs, slurm: Sites, torch: str | None, names: tuple[str, str]
) -> None:
    gpus = {"gpus_per_node": 1}
    env = dict(make_plan(job(gpus, lifecycle={}, torch=torch), slurm()).env)
    found = {name: value for name, value in env.items() if name.startswith("TORCH_")}
    trace = JobVar(name="nccl_trace")
    assert found == {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1", names[0]: "2000", names[1]: trace}
    text = render_script(make_plan(job(gpus, lifecycle={}, torch=torch), slurm())).text
    assert f'{names[1]}="$nccl_trace"' in text
    # Neither without NCCL nor for a job that ends at its first failure.
    for other in (job({"gpus_per_node": 0}, lifecycle={}), job(gpus)):
        assert not any(name.startswith("TORCH_") for name, _ in make_plan(other, slurm()).env)


def test_a_site_whose_jobs_are_not_queued_again_unless_they_ask(job: Jobs, slurm: Sites) -> None:
    site = slurm(directives={"no-requeue": True})
    with pytest.raises(PlanError, match=r"with directives\.no-requeue: true") as failure:
        make_plan(job(lifecycle={}), site)
    assert failure.value.hint == "directives: {no-requeue: false}, or leave lifecycle out"
    assert make_plan(job(lifecycle={}, directives={"no-requeue": False}), site).lifecycle


@pytest.mark.parametrize("option", ["requeue", "--requeue"])
def test_a_site_where_no_job_is_queued_again(job: Jobs, slurm: Sites, option: str) -> None:
    with pytest.raises(PlanError) as failure:
        make_plan(job(lifecycle={}), slurm(forbidden={option: "jobs start once here"}))
    message = (
        "job.yaml:1: big does not allow that a job is queued again: jobs start once here (big.yaml)"
    )
    assert failure.value.message == message
    assert "chain of jobs: hpctrain help restart" in str(failure.value.hint)
