"""/sys -> NUMA nodes with their cores and sockets, PCI devices, and the paths between these."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpc_train.model.node_topology import NumaNode, cpu_numbers
from hpc_train.model.value import Value
from hpc_train.probe.run_program import whole

_DEVICES = "/sys/devices/"
_ROOT = "pci"
_NODE = re.compile(r"\A/sys/devices/system/node/node([0-9]{1,6})/cpulist:([-,0-9]{0,4000})\Z")
_BUS = re.compile(
    r"\A/sys/devices/(pci[0-9a-f:]{1,16})/pci_bus/[^/]{1,16}/cpulistaffinity:([-,0-9]{0,4000})\Z"
)


class PciDevice(Value, frozen=True, kw_only=True):
    """A device: its class in /sys (`infiniband`, `net`, `gpu`), its folders from the root on."""

    kind: str
    name: str
    numa: int | None
    path: tuple[str, ...]


def numa_nodes(cpus: str, sockets: str = "") -> tuple[NumaNode, ...]:
    """Read lines `.../nodeNUMBER/cpulist:CPUS`, and `NUMBER,SOCKET` of `lscpu -p`."""
    pairs = (line.partition(",") for line in sockets.splitlines())
    socket = {whole(node): whole(own) for node, _, own in pairs}
    found = (_NODE.search(line) for line in cpus.splitlines())
    nodes = [
        NumaNode(number=int(match[1]), cpus=match[2], socket=socket.get(int(match[1])))
        for match in found
        if match
    ]
    return tuple(sorted(nodes, key=lambda one: one.number))


def pci_devices(paths: str, roots: str, numa: Sequence[NumaNode]) -> tuple[PciDevice, ...]:
    """Read the folders of adapters, and the class files of GPUs; what is not on PCI is left out.

    `roots` are lines `/sys/devices/ROOT/pci_bus/.../cpulistaffinity:CPUS`: the nearest cores.
    """
    near = {match[1]: match[2] for line in roots.splitlines() if (match := _BUS.search(line))}
    found = []
    for line in paths.splitlines():
        *folders, kind, name = line.strip().removeprefix(_DEVICES).split("/")
        parts = tuple(part for part in (*folders, kind) if _is_pci(part))
        gpu = name == "class" and _is_pci(kind)
        if line.startswith(_DEVICES) and parts and (gpu or kind in ("infiniband", "net")):
            kind, name = ("gpu", kind) if gpu else (kind, name)
            node = _node_of(near.get(parts[0], ""), numa)
            found.append(PciDevice(kind=kind, name=name, numa=node, path=parts))
    return tuple(found)


def _node_of(cpus: str, numa: Sequence[NumaNode]) -> int | None:
    """Return the NUMA node with these cores; the kernel lists all if the firmware names none."""
    wanted = set(cpu_numbers(cpus))
    nodes = [one.number for one in numa if wanted and wanted <= set(cpu_numbers(one.cpus))]
    return nodes[0] if nodes else None


def distance(first: PciDevice, second: PciDevice) -> str:
    """Return the path between two devices as a key of `DISTANCES`, by the rule of NCCL.

    The rule compares their folders (nccl v2.4.8, `pciPathDistance`): another root is NODE or SYS,
    the same root PHB, the same switch PIX, a switch above PXB.
    """
    common = 0
    for one, other in zip(first.path, second.path, strict=False):
        if one != other:
            break
        common += 1
    if common == 0:
        known = first.numa is not None and first.numa == second.numa
        return "NODE" if known else "SYS"
    if common == 1:
        return "PHB"
    return "PIX" if common >= max(len(first.path), len(second.path)) - 2 else "PXB"


def _is_pci(part: str) -> bool:
    """Whether a folder is a root or a PCI address, not what a driver adds (`virtio2`)."""
    return part.startswith(_ROOT) or part.count(":") == 2
