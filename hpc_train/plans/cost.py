"""The maximum cost of plans, and the limit that the user sets."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hpc_train.base.errors import PlanError
from hpc_train.base.value import Value
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.shared_allocation import TURN_S


class Cost(Value, frozen=True, kw_only=True):
    """An upper bound: every run until its time limit; None where a run has no limit.

    GPU-hours count requested GPUs, core-hours nodes x ranks x cores of each rank; None where the
    cores of a node are unknown. An allocation of `exclusive` nodes includes all their resources,
    which a plan does not know.
    """

    runs: int
    gpu_hours: float | None
    core_hours: float | None
    exclusive: bool = False

    def __str__(self) -> str:
        """Return the cost on one line."""
        runs = f"{self.runs} run{'s' if self.runs != 1 else ''}"
        if self.gpu_hours is None:
            return f"{runs} without a time limit: the cost has no bound (--time sets one)"
        gpus = f"{self.gpu_hours:.4g} GPU-hours" if self.gpu_hours else "no GPUs"
        whole = ", but exclusive nodes may count whole" if self.exclusive else ""
        cores = "" if self.core_hours is None else f", {self.core_hours:.4g} core-hours"
        return f"{runs}: at most {gpus}{cores}{whole}"


def cost_of(plans: Sequence[LaunchPlan]) -> Cost:
    """Return the maximum cost of runs; runs that share an allocation use its largest size."""
    if any(plan.time_s is None for plan in plans):
        return Cost(runs=len(plans), gpu_hours=None, core_hours=None)
    sizes = [plan.topology for plan in plans]
    nodes = [size.nodes for size in sizes]
    gpus = [size.gpus_per_node for size in sizes]
    unknown = any(size.cpus_per_task is None for size in sizes)
    cores = [size.tasks_per_node * (size.cpus_per_task or 0) for size in sizes]
    if any(plan.nested for plan in plans):
        nodes, gpus, cores = ([max(each)] * len(plans) for each in (nodes, gpus, cores))
    hours = [((plan.time_s or 0) + (TURN_S if plan.nested else 0)) / 3600 for plan in plans]
    return Cost(
        runs=len(plans),
        gpu_hours=sum(n * g * h for n, g, h in zip(nodes, gpus, hours, strict=True)),
        core_hours=None
        if unknown
        else sum(n * c * h for n, c, h in zip(nodes, cores, hours, strict=True)),
        exclusive=any("exclusive" in dict(plan.directives) for plan in plans),
    )


def check_budget(cost: Cost, max_gpu_hours: float | None) -> None:
    """Refuse a submission whose known cost exceeds the user's limit.

    Raises:
        PlanError: it exceeds the limit or has no bound, or the limit is not a number of hours.
    """
    if max_gpu_hours is None:
        return
    if not 0 <= max_gpu_hours < math.inf:
        raise PlanError(
            f"--max-gpu-hours {max_gpu_hours:g}: not a number of hours, 0 or more",
            "--max-gpu-hours 100",
        )
    if cost.gpu_hours is None:
        raise PlanError(
            f"--max-gpu-hours {max_gpu_hours:g} cannot be checked: {cost}",
            "add `time:` to the job's resources, or --time 1h",
        )
    if cost.gpu_hours > max_gpu_hours:
        raise PlanError(
            f"--max-gpu-hours {max_gpu_hours:g}: {cost}",
            "fewer repetitions or points, a shorter --time, or a larger limit",
        )
