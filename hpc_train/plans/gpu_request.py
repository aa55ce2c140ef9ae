"""The option that requests GPUs, in the site's form, for a job and for each of its steps."""

from __future__ import annotations

from hpc_train.base.errors import PlanError
from hpc_train.plans.plan import LaunchRequest


def gpu_options(
    form: str, gpu_type: str | None, gpus_per_node: int, nodes: int, slots_per_node: int
) -> dict[str, str]:
    """Request GPUs per node if the site allows it, so that all GPUs are visible to every rank.

    Raises:
        PlanError: GPUs that cannot be counted per task.
    """
    if not gpus_per_node or form == "none":
        return {}
    kind = f"{gpu_type}:" if gpu_type else ""
    if form == "gres":
        return {"gres": f"gpu:{kind}{gpus_per_node}"}
    if form == "gpus":
        return {"gpus": f"{kind}{gpus_per_node * nodes}"}
    if form == "gpus-per-task":
        if gpus_per_node % slots_per_node:
            raise PlanError(
                f"{gpus_per_node} GPUs of a node for {slots_per_node} tasks: the site counts GPUs "
                "per task (gpu_request: gpus-per-task)",
                "as many GPUs on each node as ranks, or a launcher that starts once on a node",
            )
        return {"gpus-per-task": f"{kind}{gpus_per_node // slots_per_node}"}
    return {"gpus-per-node": f"{kind}{gpus_per_node}"}


def step_gpus(request: LaunchRequest, slots_per_node: int) -> tuple[str, ...]:
    """State the number of GPUs of the step, because the allocation may be larger.

    A step without a request gets all GPUs of the job; if the job requests GPUs per task, the step
    inherits that number even with fewer tasks.
    """
    if not request.nested and request.gpu_request != "gpus-per-task":
        return ()
    topology, form, gpu_type = request.topology, request.gpu_request, request.gpu_type
    gpus = gpu_options(form, gpu_type, topology.gpus_per_node, topology.nodes, slots_per_node)
    return tuple(f"--{option}={value}" for option, value in gpus.items())
