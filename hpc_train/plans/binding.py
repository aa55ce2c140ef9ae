"""The cores and GPUs of each local rank, and the places of a node's GPUs and adapters."""

import re
from collections.abc import Mapping

from hpc_train.base.values import Value
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context, takes_whole_nodes
from hpc_train.plans.plan import EnvChange, Launch, LaunchRequest, Setting, Text
from hpc_train.sites.partition import Vendor

# With what separates the cores of two ranks: of srun, and of Cray PALS's mpiexec.
_LISTS = {"mask_cpu": ",", "map_cpu": ",", "mask_ldom": ",", "map_ldom": ",", "list": ":"}
# The binding of each rank, or the reason why there is none.
GpuOrder = tuple[EnvChange, Setting] | Setting | None
_VARIABLES = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES"}


def resolve_binding(context: Context, topology: Topology) -> dict[str, Setting]:
    """Return the parts of the site's binding that apply to the job, and reasons for the others."""
    launchers = context.site.value.launchers
    settings: dict[str, Setting] = {}
    cpus = _cpu_word(context)
    if cpus:
        settings["cpu_bind"] = _cpus(cpus, context, topology)
    if word := launchers.gpu_bind:
        gpus, ranks = topology.gpus_per_node, topology.tasks_per_node
        why = "a rank may see its own GPU only, which then is number 0" if word != "none" else ""
        # A rank with several GPUs must see them all.
        why = why if gpus == ranks else f"left out: {gpus} GPUs for {ranks} ranks"
        value, origin = word if gpus == ranks else None, context.site.origin("launchers.gpu_bind")
        settings["gpu_bind"] = Setting(value=value, origin=origin, why=why)
    return settings


def left_out(context: Context, request: LaunchRequest, launch: Launch) -> dict[str, Setting]:
    """Return a binding to cores that the launcher has no option for, as a setting without value."""
    word, bound = _cpu_word(context), request.binding.cpus
    if not word or not bound:
        return {}
    if any(isinstance(one, Text) and one.text.endswith(bound) for one in launch.argv):
        return {}
    why = f"left out: {context.launcher.name} starts the ranks and has no such option"
    return {"cpu_bind": Setting(value=None, origin=word[1], why=why)}


def gpu_order(context: Context, topology: Topology, vendor: Vendor | None) -> GpuOrder:
    """Return a variable for each rank that lists the node's GPUs in the ranks' order.

    For nodes whose GPUs are not numbered like their nearest cores. It applies to whole nodes only;
    otherwise the setting gives the reason why it is omitted.
    """
    order = context.partition.gpu_order
    if not topology.gpus_per_node or list(order) == sorted(order):
        return None
    origin = context.near("gpu_order")
    obstacle = _obstacle(context, topology, len(order))
    if not obstacle and vendor not in _VARIABLES:
        obstacle = "the profile does not state network.gpus"
    if obstacle:
        return Setting(value=None, origin=origin, why=f"left out: {obstacle}")
    name, value = _VARIABLES[vendor or ""], ",".join(map(str, order))
    why = "a rank's own GPU is the one nearest to its cores; the job has all of the node's"
    change = EnvChange(name=name, value=value, scope="ranks")
    return change, Setting(value=value, origin=origin, why=why)


def _cpu_word(context: Context) -> tuple[str, str] | None:
    """Return the value of the partition, else of the site, with its origin."""
    if context.partition.cpu_bind:
        return context.partition.cpu_bind, context.origin("cpu_bind")
    word = context.site.value.launchers.cpu_bind
    return (word, context.site.origin("launchers.cpu_bind")) if word else None


def _cpus(word: tuple[str, str], context: Context, topology: Topology) -> Setting:
    """Omit masks that Slurm would refuse, or that would bind ranks to cores of other jobs."""
    value, origin = word
    kind, _, cores = value.partition(":")
    if kind not in _LISTS:
        return Setting(value=value, origin=origin)
    masks = cores.count(_LISTS[kind]) + 1
    if masks != topology.tasks_per_node:
        why = f"left out: {masks} masks, {topology.tasks_per_node} ranks on a node"
        return Setting(value=None, origin=origin, why=why)
    whole, each = context.partition.cpus_per_node, topology.cpus_per_task
    # `--cpus-per-task` allocates exactly the step's cores, even on an exclusive node.
    holds = takes_whole_nodes(context)
    if whole is not None and each is not None:
        holds = topology.tasks_per_node * each >= whole
    if not holds:
        why = "left out: masks name cores of a whole node, which the job does not have"
        return Setting(value=None, origin=origin, why=why)
    return Setting(value=value, origin=origin, why="the job has whole nodes")


def _obstacle(context: Context, topology: Topology, gpus: int) -> str:
    if topology.gpus_per_node != gpus:
        return f"it is for all {gpus} GPUs of a node, the job has {topology.gpus_per_node}"
    if topology.tasks_per_node != gpus:
        return f"it is for {gpus} ranks of a node, the job has {topology.tasks_per_node}"
    site = context.site.value
    bound = site.launchers.gpu_bind not in (None, "none") or site.gpu_request == "gpus-per-task"
    if bound and context.launcher.ranks_are_tasks:
        return "Slurm gives each rank its own GPU"
    return ""


# From the shortest path to the longest, in the words of `nvidia-smi topo -m`.
DISTANCES: Mapping[str, str] = {
    "PIX": "at most one PCIe bridge",
    "PXB": "several PCIe bridges, no host bridge",
    "PHB": "PCIe and a host bridge, typically the processor",
    "NODE": "PCIe and the link between host bridges of a NUMA node",
    "SYS": "PCIe and the link between NUMA nodes",
}
_RANGE = re.compile(r"\A([0-9]{1,6})(?:-([0-9]{1,6}))?\Z")


class NumaNode(Value, frozen=True, kw_only=True):
    """A NUMA node; `cpus` as Linux lists them (`0-15,128-143`), empty for memory alone."""

    number: int
    cpus: str = ""


class GpuPlace(Value, frozen=True, kw_only=True):
    """Place of a GPU: its NUMA node, its cores as Linux lists them, the distance of each NIC."""

    gpu: int
    numa: int | None = None
    cpus: str = ""
    nics: tuple[tuple[str, str], ...] = ()


class NodeTopology(Value, frozen=True, kw_only=True):
    """One machine. Without a GPU tool, `gpus` are empty."""

    numa: tuple[NumaNode, ...] = ()
    gpus: tuple[GpuPlace, ...] = ()

    def near_cpus(self, place: GpuPlace) -> str:
        """Return the cores nearest to a GPU: its own list, else that of its NUMA node."""
        own = next((one.cpus for one in self.numa if one.number == place.numa), "")
        return place.cpus or own

    def in_order(self) -> tuple[GpuPlace, ...]:
        """Return the GPUs in the order of their cores, which is that of bound local ranks."""
        last = 10**6

        def key(place: GpuPlace) -> tuple[int, int]:
            return min(cpu_numbers(self.near_cpus(place)), default=last), place.gpu

        return tuple(sorted(self.gpus, key=key))


def nearest_nics(place: GpuPlace) -> tuple[str, ...]:
    """Return the NICs with the shortest path to a GPU."""
    order = list(DISTANCES)
    known = [(order.index(level), name) for name, level in place.nics if level in order]
    best = min((rank for rank, _ in known), default=None)
    return tuple(name for rank, name in known if rank == best)


def cpu_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a list of Linux, `0-3,8`; parts that are no range are left out."""
    found: list[int] = []
    for part in text.split(","):
        if match := _RANGE.match(part.strip()):
            first = int(match[1])
            found.extend(range(first, int(match[2] or first) + 1))
    return tuple(found)
