"""NodeTopology -> what of it decides the speed of a node, in words that two nodes can share."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from hpc_train.model.node_topology import NodeTopology, cpu_numbers, nearest_nics

# Of the GPUs that the job sees: comparable between nodes of which it sees as many.
OF_GPUS = ("links between GPUs", "GPUs of a NUMA node", "nearest adapters of the GPUs")


def topology_traits(topology: NodeTopology) -> Mapping[str, str]:
    """Return name and value of each known trait; numbers and names of devices are none.

    A trait of `OF_GPUS` has the number of GPUs in its name, because a job may see some of them.
    """
    places, seen = topology.gpus, len(topology.gpus)
    known = [place.numa for place in places if place.numa is not None]
    levels = [dict(place.nics)[near[0]] for place in places if (near := nearest_nics(place))]
    of_gpus = (
        _counted(link.label for link in topology.links),
        " + ".join(map(str, sorted(Counter(known).values()))) if len(known) == seen else "",
        _counted(levels) if len(levels) == seen else "",
    )
    found = {
        "GPU": topology.gpu_model,
        "NUMA nodes": _numa(topology),
        "network adapters": str(len(topology.nics)),
    }
    found |= {f"{name} ({seen} GPUs)": text for name, text in zip(OF_GPUS, of_gpus, strict=True)}
    return MappingProxyType({name: text for name, text in found.items() if text and text != "0"})


def _numa(topology: NodeTopology) -> str:
    """Return `8 of 16 CPUs on 2 sockets`; empty if the machine names no NUMA node."""
    sizes = [len(cpu_numbers(node.cpus)) for node in topology.numa]
    if not sizes:
        return ""
    sockets = {node.socket for node in topology.numa if node.socket is not None}
    each = " + ".join(f"{number} of {size}" for size, number in sorted(Counter(sizes).items()))
    text = f"{each} CPUs"
    return f"{text} on {len(sockets)} socket{'s' * (len(sockets) > 1)}" if sockets else text


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{number} x {word}" for word, number in sorted(Counter(words).items()))
