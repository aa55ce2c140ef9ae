"""Do GPUs and ranks of a node fit? What cannot be fast is a warning, with the numbers."""

from __future__ import annotations

from hpc_train.model.plan import Topology

# Their programs are one process for each rank; spawn and torchrun's users count ranks themselves.
_ONE_PROCESS = ("single", "srun")


def check_gpus(topology: Topology, launcher: str) -> tuple[str, ...]:
    """Return warnings: ranks that share a GPU, GPUs that nobody uses, one rank with several."""
    gpus, tasks = topology.gpus_per_node, topology.tasks_per_node
    if not gpus or gpus == tasks:
        return ()
    if tasks > gpus:
        return (
            f"{tasks} ranks for {gpus} GPU{'s' if gpus > 1 else ''} of a node: NCCL refuses two "
            "ranks on one GPU",
        )
    if gpus % tasks:
        return (f"{gpus} GPUs for {tasks} ranks of a node: {gpus % tasks} cannot be shared out",)
    if launcher not in _ONE_PROCESS:
        return ()
    advice = f"DistributedDataParallel with a rank for each GPU (tasks_per_node: {gpus}) is faster"
    who = "the rank sees" if tasks == 1 else f"each of {tasks} ranks sees"
    return (
        f"{who} all {gpus} GPUs of its node (DataParallel, or a model over several GPUs); "
        f"if it is DataParallel, {advice}",
    )
