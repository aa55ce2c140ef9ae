"""The option that requests GPUs, in the site's form, for a job and for each of its steps."""

from __future__ import annotations

from hpc_train.base.errors import PlanError
from hpc_train.base.value import Value
from hpc_train.plans.plan import LaunchRequest, Setting


class GpuRequest(Value, frozen=True, kw_only=True):
    """The form of the request; `kind` is the GPU type in Slurm, if it is part of the request."""

    form: str
    kind: str | None = None


def request_of(form: str, settings: dict[str, Setting]) -> GpuRequest:
    """Return the form of GPU requests on a site."""
    kind = settings.get("gpu_type")
    return GpuRequest(form=form, kind=kind.value if kind else None)


def gpu_options(
    request: GpuRequest, gpus_per_node: int, nodes: int, slots_per_node: int
) -> dict[str, str]:
    """Request GPUs per node if the site allows it, so that all GPUs are visible to every rank.

    Raises:
        PlanError: GPUs that cannot be counted per task.
    """
    if not gpus_per_node or request.form == "none":
        return {}
    kind = f"{request.kind}:" if request.kind else ""
    if request.form == "gres":
        return {"gres": f"gpu:{kind}{gpus_per_node}"}
    if request.form == "gpus":
        return {"gpus": f"{kind}{gpus_per_node * nodes}"}
    if request.form == "gpus-per-task":
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
    asked = GpuRequest(form=request.gpu_request, kind=request.gpu_type)
    topology = request.topology
    gpus = gpu_options(asked, topology.gpus_per_node, topology.nodes, slots_per_node)
    return tuple(f"--{option}={value}" for option, value in gpus.items())
