"""Runs that share one allocation: what their steps say, and what is asked for once."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import PlanError
from hpc_train.base.values import Sourced, encode_unit
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import Allocation, LaunchPlan, NestedRun
from hpc_train.plans.shared_allocation import TURN_S, allocate
from hpc_train.scripts.prepare import prepare, request_of
from hpc_train.sites.profile import SiteProfile
from tests.plans.conftest import Jobs
from tests.plans.launchers.made import word

Site = Sourced[SiteProfile]
Sites = Callable[..., Site]
STEP_NODES = "--nodelist=$run_nodes"
PARTITION = {"name": "gpu", "default": True, "max_time": "1h", "cpus_per_node": 64}


def words(plan: LaunchPlan) -> list[str]:
    return [word(token) for token in plan.launch.argv]


def shared(site: Site, *jobs: Sourced[JobSpec]) -> Allocation:
    plans = [(f"run-{i}", make_plan(job, site, nested=True)) for i, job in enumerate(jobs)]
    return allocate(site, plans, "study")


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "spawn"])
def test_a_step_takes_the_first_nodes_and_its_own_gpus(
    job: Jobs, slurm: Sites, launcher: str
) -> None:
    given = job({"nodes": 2, "gpus_per_node": 4}, launcher=launcher)
    nested, alone = (make_plan(given, slurm(), nested=value) for value in (True, False))
    assert {STEP_NODES, "--gpus-per-node=4"} <= set(words(nested)) - set(words(alone))
    assert words(nested).index(STEP_NODES) < words(nested).index("bash")
    gres = make_plan(given, slurm(gpu_request="gres"), nested=True)
    assert "--gres=gpu:4" in words(gres)
    assert "--gpus-per-node=4" not in words(gres)


def test_a_plan_that_is_not_nested_is_written_as_it_always_was(job: Jobs, slurm: Sites) -> None:
    """Its bytes name its runs; a new key would make every study's runs new ones."""
    alone, nested = (
        msgspec.json.encode(
            # As for a digest: without what only explains.
            msgspec.structs.replace(make_plan(job(), slurm(), nested=value), notes=()),
            enc_hook=encode_unit,
        )
        for value in (False, True)
    )
    assert b'"nested"' not in alone
    assert b'"nested":true' in nested
    assert alone.endswith(b'"warnings":[],"backend":"gloo"}')


def test_this_machine_has_no_allocation() -> None:
    study = Path(__file__).parents[1] / "net/studies/nested.yaml"
    with pytest.raises(PlanError, match="which local does not have") as failure:
        prepare(request_of(study, (), "local", {}))
    assert "independent" in failure.value.hint


def test_the_largest_of_everything_is_asked_for_once(job: Jobs, slurm: Sites) -> None:
    small = {"nodes": 1, "gpus_per_node": 1, "cpus_per_task": 8, "time": "10m", "mem": "8G"}
    wide = {"nodes": 4, "gpus_per_node": 4, "cpus_per_task": 8, "time": "5m", "exclusive": True}
    found = shared(slurm(), job(small, account="a"), job(wide, account="a"))
    assert dict(found.directives) == {
        "job-name": "study",
        "account": "a",
        "nodes": "4",
        "ntasks-per-node": "4",
        "cpus-per-task": "8",
        "gpus-per-node": "4",
        "mem": "8G",
        "time": "00:16:00",
        "exclusive": "",
        "open-mode": "append",
    }
    assert found.turns == (
        NestedRun(run_id="run-0", time_s=600),
        NestedRun(run_id="run-1", time_s=300),
    )
    assert (found.name, found.site, found.warnings) == ("study", "big", ())


@pytest.mark.parametrize(
    ("runs", "slots"),
    [
        # Launcher, tasks per node, cores of each; torchrun and spawn want one slot per node.
        ([("srun", 4, 8), ("torchrun", 4, 8)], ("4", "8")),
        ([("torchrun", 4, 8), ("spawn", 2, 8)], ("1", "32")),
        # Three slots of three cores would be one core more than the larger run wants.
        ([("torchrun", 1, 8), ("mpirun", 3, 1)], ("4", "2")),
        ([("torchrun", 1, 7), ("mpirun", 2, 1)], ("7", "1")),
        ([("mpirun", 6, 1), ("mpirun", 3, 2)], ("6", "1")),
    ],
)
def test_slots_hold_every_run_and_no_core_too_many(
    job: Jobs, slurm: Sites, runs: list[tuple[str, int, int]], slots: tuple[str, str]
) -> None:
    jobs = [
        job({"tasks_per_node": tasks, "cpus_per_task": cores}, launcher=launcher)
        for launcher, tasks, cores in runs
    ]
    options = dict(shared(slurm(), *jobs).directives)
    assert (options["ntasks-per-node"], options["cpus-per-task"]) == slots


@pytest.mark.parametrize("key", ["partition", "account", "qos", "constraint"])
def test_one_allocation_has_one_queue(job: Jobs, slurm: Sites, key: str) -> None:
    with pytest.raises(PlanError) as failure:
        shared(slurm(), job(**{key: "a"}), job(**{key: "b"}), job(**{key: "a"}))
    assert failure.value.message.startswith(f"job.yaml:1: {key} is a, b; ")
    assert "`placement: independent`" in failure.value.hint


def test_the_sum_of_the_limits_must_fit_the_partition(job: Jobs, slurm: Sites) -> None:
    site = slurm(partitions=[PARTITION])
    limit = 3600 // 3 - TURN_S
    fits = shared(site, *[job({"time": f"{limit}s"})] * 3)
    assert dict(fits.directives)["time"] == "01:00:00"
    with pytest.raises(PlanError) as failure:
        shared(site, *[job({"time": f"{limit}s"})] * 4)
    assert "4 runs in one allocation need 01:20:00" in failure.value.message
    assert "big gpu gives a job at most 01:00:00" in failure.value.message
    assert "fewer repetitions" in failure.value.hint


def test_a_run_without_a_limit_leaves_the_allocation_without_one(job: Jobs, slurm: Sites) -> None:
    found = shared(slurm(partitions=[PARTITION]), job({"time": "1m"}), job())
    assert "time" not in dict(found.directives)
    assert [turn.time_s for turn in found.turns] == [60, None]
    (warning,) = found.warnings
    assert "default time" in warning


def test_a_queue_that_only_some_runs_name(job: Jobs, slurm: Sites) -> None:
    with pytest.raises(PlanError, match=r"job\.yaml:1: qos is none, high; "):
        shared(slurm(), job(), job(qos="high"))
