"""Backend: PyTorch's rules, what each refuses, and that a run keeps its name."""

from collections.abc import Callable
from typing import Any

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.plans.build import make_plan, plan_digest
from hpc_train.plans.plan import LaunchPlan
from tests.plans.conftest import Jobs, Sites

Planned = Callable[[dict[str, Any] | None, int, int, str], LaunchPlan]


@pytest.mark.parametrize(
    ("network", "place", "backend", "why"),
    [
        (None, (4, "srun"), "nccl", "GPUs: nccl"),
        (None, (0, "srun"), "gloo", "CPUs: gloo"),
        ({"fabric": "ethernet"}, (2, "srun"), "nccl", "GPUs: nccl"),
        ({"fabric": "slingshot", "gpus": "intel"}, (2, "srun"), "xccl", "Intel's GPUs: xccl"),
        ({"fabric": "slingshot", "gpus": "intel"}, (0, "srun"), "gloo", "CPUs: gloo"),
        ({"fabric": "ethernet"}, (0, "mpirun"), "gloo", "CPUs: gloo"),
    ],
)
def test_auto_follows_torchs_rules(
    planned: Planned, network: dict[str, Any], place: tuple[int, str], backend: str, why: str
) -> None:
    plan = planned(network, 2, *place)
    setting = plan.settings["backend"]
    assert plan.backend == setting.value == backend
    assert setting.origin == "rule"
    assert why in setting.why
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("keys", "network", "message"),
    [
        ({"backend": "nccl"}, {}, "backend nccl needs GPUs, and the job has none"),
        ({"backend": "mpi", "launcher": "torchrun"}, {}, "torchrun starts others"),
        ({"backend": "mpi", "launcher": "spawn"}, {}, "spawn starts others"),
    ],
)
def test_what_a_backend_cannot_carry_is_refused(
    job: Jobs, slurm: Sites, keys: dict[str, Any], network: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=f"^job.yaml:1: .*{message}") as caught:
        make_plan(job({"nodes": 2}, **keys), slurm(network=network))
    assert caught.value.hint


@pytest.mark.parametrize("where", ["job", "site"])
def test_the_variable_is_not_set_beside_the_key(job: Jobs, slurm: Sites, where: str) -> None:
    env = {"env": {"HPCTRAIN_BACKEND": "gloo"}}
    place = "job.yaml:8" if where == "job" else "big.yaml"
    with pytest.raises(PlanError, match=f"^{place}: HPCTRAIN_BACKEND is set by the job's backend"):
        make_plan(job(**(env if where == "job" else {})), slurm(**(env if where == "site" else {})))


def test_only_another_backend_gives_a_run_another_name(job: Jobs, slurm: Sites) -> None:
    def digest(**keys: Any) -> str:
        return plan_digest(make_plan(job({"gpus_per_node": 2}, **keys), slurm()))

    assert digest() == digest(backend="auto") == digest(backend="nccl")
    assert digest() != digest(backend="gloo")
