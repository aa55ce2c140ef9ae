"""Which GPU each rank takes as its own, where their numbers do not follow those of the cores."""

from __future__ import annotations

from hpc_train.model.network import Vendor
from hpc_train.model.plan import EnvChange, Setting, Topology
from hpc_train.plans.context import Job, Site, partition_of

# What each rank gets, or why it gets nothing.
Order = tuple[EnvChange, Setting] | Setting | None
_VARIABLES = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES"}
# Who starts ranks that Slurm itself may bind to a GPU.
_BOUND = ("srun", "deepspeed")


def gpu_order(
    job: Job, site: Site, topology: Topology, launcher: str, vendor: Vendor | None
) -> Order:
    """Return a variable for each rank that lists the node's GPUs in the ranks' order.

    It holds for whole nodes only; otherwise the setting says why it is left out.
    """
    found = partition_of(job, site)
    order = found[1].gpu_order if found else ()
    if found is None or not topology.gpus_per_node or list(order) == sorted(order):
        return None
    origin = site.near(f"partitions.{found[0]}.gpu_order")
    obstacle = _obstacle(site, topology, launcher, len(order)) or _unknown(vendor)
    if obstacle:
        return Setting(value=None, origin=origin, why=f"left out: {obstacle}")
    name, value = _VARIABLES[vendor or ""], ",".join(map(str, order))
    why = "a rank's own GPU is the one nearest to its cores; the job holds all of the node's"
    change = EnvChange(name=name, value=value, scope="ranks")
    return change, Setting(value=value, origin=origin, why=why)


def _unknown(vendor: Vendor | None) -> str:
    return "" if vendor in _VARIABLES else "the profile does not say network.gpus"


def _obstacle(site: Site, topology: Topology, launcher: str, gpus: int) -> str:
    if topology.gpus_per_node != gpus:
        return f"it is for all {gpus} GPUs of a node, the job has {topology.gpus_per_node}"
    if topology.tasks_per_node != gpus:
        return f"it is for {gpus} ranks of a node, the job has {topology.tasks_per_node}"
    bind = site.value.launchers.gpu_bind not in (None, "none")
    if launcher in _BOUND and (bind or site.value.gpu_request == "gpus-per-task"):
        return "Slurm gives each rank its own GPU"
    return ""
