"""The sections of the probe script on GPUs, NUMA nodes and PCI -> NodeTopology."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from hpc_train.model.hardware import Gpu
from hpc_train.model.node_topology import GpuPlace, Nic, NodeTopology, NumaNode
from hpc_train.probe.hwloc_topology import hwloc_topology
from hpc_train.probe.nvidia_topology import GpuPaths, nvidia_topology
from hpc_train.probe.probe_script import Section
from hpc_train.probe.processor import lscpu_fields
from hpc_train.probe.rocm_topology import rocm_topology
from hpc_train.probe.run_program import printable
from hpc_train.probe.sysfs_topology import PciDevice, distance, numa_nodes, pci_devices

_NUMA = re.compile(r"NUMA node([0-9]{1,6}) CPU\(s\)")
_CPUS = re.compile(r"[0-9]{1,6}[-,0-9]*")


def read_topology(host: str, gpus: Sequence[Gpu], found: Mapping[str, Section]) -> NodeTopology:
    """Return what the tools say; what they do not say is taken from /sys, then from hwloc."""
    hwloc = hwloc_topology(_text(found, "hwloc"))
    gpus = gpus or hwloc.gpus
    numa = numa_nodes(_text(found, "numa"), _text(found, "sockets"))
    numa = numa or _numa_of_lscpu(_text(found, "cpus")) or hwloc.numa
    devices = pci_devices(_text(found, "pci"), _text(found, "pci_roots"), numa) or hwloc.devices
    devices = _located(devices, numa, hwloc.devices)
    paths = _gpu_paths(gpus, found)
    places = {place.gpu: place for place in paths.places}
    adapters = _adapters(devices)
    return NodeTopology(
        host=host,
        gpu_model=", ".join(dict.fromkeys(gpu.name for gpu in gpus)),
        numa=numa,
        gpus=tuple(_place(places.get(gpu.index), gpu, devices, adapters) for gpu in gpus),
        nics=_nics(paths.places, adapters),
        links=paths.links,
    )


def _located(
    devices: Sequence[PciDevice], numa: Sequence[NumaNode], others: Sequence[PciDevice]
) -> tuple[PciDevice, ...]:
    """Give devices without a NUMA node that of hwloc, which knows boards whose firmware is silent.

    On a machine with one node, the firmware need not name it.
    """
    named = {(one.kind, one.name): one.numa for one in others}
    only = numa[0].number if len(numa) == 1 else None
    return tuple(
        msgspec.structs.replace(one, numa=_first(one.numa, named.get((one.kind, one.name)), only))
        for one in devices
    )


def _first(*nodes: int | None) -> int | None:
    return next((node for node in nodes if node is not None), None)


def _text(found: Mapping[str, Section], name: str) -> str:
    section = found.get(name)
    return section.text if section else ""


def _gpu_paths(gpus: Sequence[Gpu], found: Mapping[str, Section]) -> GpuPaths:
    if gpus and gpus[0].vendor == "amd":
        return rocm_topology(_text(found, "rocm_topology"))
    return nvidia_topology(_text(found, "nvidia_topology")) if gpus else GpuPaths()


def _adapters(devices: Sequence[PciDevice]) -> tuple[PciDevice, ...]:
    """Return the RDMA adapters; without any, the network interfaces."""
    rdma = tuple(one for one in devices if one.kind == "infiniband")
    return rdma or tuple(one for one in devices if one.kind == "net")


def _place(
    said: GpuPlace | None, gpu: Gpu, devices: Sequence[PciDevice], adapters: Sequence[PciDevice]
) -> GpuPlace:
    place = said or GpuPlace(gpu=gpu.index)
    own = next((one for one in devices if one.kind == "gpu" and one.name == gpu.bus), None)
    if own is None:
        return place
    nics = place.nics or tuple((nic.name, distance(own, nic)) for nic in adapters)
    return msgspec.structs.replace(place, nics=nics, numa=_first(place.numa, own.numa))


def _nics(places: Sequence[GpuPlace], adapters: Sequence[PciDevice]) -> tuple[Nic, ...]:
    named = dict.fromkeys(name for place in places for name, _ in place.nics)
    numa = {one.name: one.numa for one in adapters}
    return tuple(Nic(name=printable(name), numa=numa.get(name)) for name in named or numa)


def _numa_of_lscpu(text: str) -> tuple[NumaNode, ...]:
    return tuple(
        NumaNode(number=int(match[1]), cpus=value)
        for key, value in sorted(lscpu_fields(text).items())
        if (match := _NUMA.fullmatch(key)) and _CPUS.fullmatch(value)
    )
