"""/sys -> NUMA nodes with their cores and sockets, PCI devices, and the paths between these."""

from __future__ import annotations

from hpc_train.model.node_topology import NumaNode
from hpc_train.model.value import Value
from hpc_train.probe.run_program import whole

_DEVICES = "/sys/devices/"
_ROOT = "pci"


class PciDevice(Value, frozen=True, kw_only=True):
    """A device: its class in /sys (`infiniband`, `net`, `gpu`), its folders from the root on."""

    kind: str
    name: str
    numa: int | None
    path: tuple[str, ...]


def numa_nodes(text: str) -> tuple[NumaNode, ...]:
    """Read lines `NUMBER|CPUS|SOCKET`."""
    found = []
    for line in text.splitlines():
        number, *rest = line.split("|")
        if whole(number) is not None and len(rest) == 2:
            one = NumaNode(number=int(number), cpus=rest[0].strip(), socket=whole(rest[1].strip()))
            found.append(one)
    return tuple(sorted(found, key=lambda one: one.number))


def pci_devices(text: str) -> tuple[PciDevice, ...]:
    """Read lines `CLASS/NAME|NUMA|PATH`; devices that are not on PCI are left out."""
    found = []
    for line in text.splitlines():
        name, numa, path, *_ = (*line.split("|"), "", "")
        parts = path.strip().removeprefix(_DEVICES).split("/")
        if path.startswith(_DEVICES) and parts[0].startswith(_ROOT) and "/" in name:
            kind, _, own = name.partition("/")
            # The kernel writes -1 if the firmware does not say.
            node = whole(numa.strip())
            found.append(PciDevice(kind=kind, name=own, numa=node, path=_pci_part(parts)))
    return tuple(found)


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


def _pci_part(parts: list[str]) -> tuple[str, ...]:
    """Return the root and the PCI addresses, without what a driver adds (`virtio2`)."""
    return tuple(part for part in parts if part.startswith(_ROOT) or part.count(":") == 2)
