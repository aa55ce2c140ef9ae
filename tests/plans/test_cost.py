"""What a submission may cost at most."""

from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import PlanError
from hpc_train.jobs.job import Topology
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import TURN_S, Cost, check_budget, cost_of
from tests.slurm.fake_slurm import FakeSlurm
from tests.submissions.on_slurm import job

HOUR = 3600


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Job files are written to the current folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def plan(slurm: FakeSlurm) -> LaunchPlan:
    return job().points[0].plan


def sized(plan: LaunchPlan, nodes: int, tasks: int, gpus: int, time_s: int | None) -> LaunchPlan:
    topology = Topology(nodes=nodes, tasks_per_node=tasks, gpus_per_node=gpus, cpus_per_task=8)
    return msgspec.structs.replace(plan, topology=topology, time_s=time_s)


def nested(*plans: LaunchPlan) -> list[LaunchPlan]:
    return [msgspec.structs.replace(plan, nested=True) for plan in plans]


def test_every_run_until_its_time_limit(plan: LaunchPlan) -> None:
    found = cost_of([sized(plan, 2, 4, 4, HOUR), sized(plan, 1, 1, 1, HOUR // 2)])
    assert found == Cost(runs=2, gpu_hours=8 + 0.5, core_hours=2 * 4 * 8 + 4)


def test_the_largest_size_may_be_that_of_no_run(plan: LaunchPlan) -> None:
    """As in a retry of parts of a grid: four nodes for one run, eight GPUs a node for another."""
    found = cost_of(nested(sized(plan, 4, 1, 1, HOUR), sized(plan, 1, 8, 8, HOUR)))
    hours = 2 * (HOUR + TURN_S) / HOUR
    assert found.gpu_hours == pytest.approx(4 * 8 * hours)
    assert found.core_hours == pytest.approx(4 * 64 * hours)


def test_without_a_limit_there_is_no_bound(plan: LaunchPlan) -> None:
    found = cost_of([sized(plan, 1, 1, 1, HOUR), sized(plan, 1, 1, 1, None)])
    assert found == Cost(runs=2, gpu_hours=None, core_hours=None)
    assert str(found) == "2 runs without a time limit: the cost has no bound (--time sets one)"


def test_a_budget(plan: LaunchPlan) -> None:
    cost = cost_of([sized(plan, 2, 4, 4, HOUR)])
    check_budget(cost, None)
    check_budget(cost, 8)
    with pytest.raises(PlanError) as failure:
        check_budget(cost, 7.99)
    said = "--max-gpu-hours 7.99: 1 run: at most 8 GPU-hours, 64 core-hours"
    assert failure.value.message == said
    assert "a larger limit" in failure.value.hint


@pytest.mark.parametrize("hours", [float("nan"), float("inf"), -1.0])
def test_a_budget_is_a_number_of_hours(plan: LaunchPlan, hours: float) -> None:
    with pytest.raises(PlanError, match=f"--max-gpu-hours {hours:g}: not a number of hours"):
        check_budget(cost_of([sized(plan, 1, 1, 1, HOUR)]), hours)
