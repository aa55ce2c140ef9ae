"""hwloc's XML (`lstopo --of xml`) -> NUMA nodes, PCI devices, and the GPUs that it names.

The format is hwloc's `doc/` and `hwloc2.dtd`: objects in one another, a PCI device below its
bridges, and below it what the system calls it (`OSDev`). Versions 1.11 to 2 are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hpc_train.model.hardware import Gpu
from hpc_train.model.node_topology import NumaNode, cpu_list
from hpc_train.model.value import Value
from hpc_train.probe.run_program import printable, whole
from hpc_train.probe.sysfs_topology import PciDevice

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_PACKAGES = ("Package", "Socket")
# What hwloc names a device by number: 2 a network interface, 3 an RDMA adapter.
_KINDS = {"2": "net", "3": "infiniband"}
_GPU = re.compile(r"\A(cuda|nvml|rsmi)([0-9]{1,3})\Z")
_BUS = re.compile(r"\A([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\Z")
_SET = re.compile(r"\A(?:0x[0-9a-f]{0,8}|0xf\.\.\.f|,){1,4000}\Z")
# An object, with those around it from the machine inwards.
_Nested = tuple["Element", tuple["Element", ...]]


class HwlocTopology(Value, frozen=True, kw_only=True):
    """What one XML says; `gpus` only of a hwloc that was built with the libraries of a vendor."""

    numa: tuple[NumaNode, ...] = ()
    devices: tuple[PciDevice, ...] = ()
    gpus: tuple[Gpu, ...] = ()


def hwloc_topology(text: str) -> HwlocTopology:
    """Read the XML; what is no XML, or declares entities, says nothing."""
    # Few machines have hwloc, and few reports a node with it.
    from xml.etree import ElementTree

    if "<topology" not in text or "<!ENTITY" in text:
        return HwlocTopology()
    try:
        root = ElementTree.fromstring(text.strip())  # noqa: S314 # entities are refused above
    except ElementTree.ParseError:
        return HwlocTopology()
    objects = tuple(_objects(root))
    numa = {one.number: one for one in _numa(objects)}
    gpus = {gpu.bus: gpu for gpu in _gpus(objects)}
    return HwlocTopology(
        numa=tuple(numa[number] for number in sorted(numa)),
        devices=tuple(_devices(objects)),
        gpus=tuple(sorted(gpus.values(), key=lambda gpu: gpu.index)),
    )


def _objects(root: Element) -> Iterator[_Nested]:
    """Yield the objects in the order of the text, however deep they are in one another."""
    left: list[_Nested] = [(one, ()) for one in reversed(root.findall("object"))]
    while left:
        one, around = left.pop()
        yield one, around
        left += [(inner, (*around, one)) for inner in reversed(one.findall("object"))]


def _numa(objects: Sequence[_Nested]) -> Iterator[NumaNode]:
    """Yield the NUMA nodes; a node is inside its package, or in version 1 around it."""
    for one, around in objects:
        number = whole(one.get("os_index"))
        if one.get("type") == "NUMANode" and number is not None:
            packages = [*around, *one.iter("object")]
            own = [whole(p.get("os_index")) for p in packages if p.get("type") in _PACKAGES]
            cpus = cpu_list(_bits(one.get("cpuset", "")))
            yield NumaNode(number=number, cpus=cpus, socket=own[0] if len(own) == 1 else None)


def _devices(objects: Sequence[_Nested]) -> Iterator[PciDevice]:
    for one, around in objects:
        path = tuple(filter(None, map(_address, (*around, one))))
        kind = one.get("pci_type", "")[:2]
        if one.get("type") == "PCIDev" and kind in ("03", "12") and path:
            yield PciDevice(
                kind="gpu", name=path[-1], numa=_node(around), path=_rooted(around, path)
            )
        name = _KINDS.get(one.get("osdev_type", ""))
        if one.get("type") == "OSDev" and name and path:
            own = printable(one.get("name", ""))
            yield PciDevice(kind=name, name=own, numa=_node(around), path=_rooted(around, path))


def _gpus(objects: Sequence[_Nested]) -> Iterator[Gpu]:
    """Yield a GPU for each name that a vendor's library gives to a device."""
    for one, around in objects:
        match = _GPU.match(one.get("name", "")) if one.get("type") == "OSDev" else None
        bus = _address(around[-1]) if around else ""
        if match and bus:
            name = printable(_info(one).get("GPUModel", ""))
            amd = match[1] == "rsmi"
            yield Gpu(index=int(match[2]), name=name, vendor="amd" if amd else "nvidia", bus=bus)


def _info(one: Element) -> Mapping[str, str]:
    return {info.get("name", ""): info.get("value", "") for info in one.findall("info")}


def _address(one: Element) -> str:
    match = _BUS.match(one.get("pci_busid", "").lower())
    return f"{match[1][-4:]}:{match[2]}" if match else ""


def _rooted(around: Sequence[Element], path: tuple[str, ...]) -> tuple[str, ...]:
    """Put the root before the addresses, as the folders of /sys have it."""
    hosts = [one.get("bridge_pci", "") for one in around if one.get("bridge_type") == "0-1"]
    domain, _, buses = hosts[0].partition(":[") if hosts else (path[0][:4], "", path[0][5:7])
    return f"pci{domain}:{buses[:2]}", *path


def _node(around: Sequence[Element]) -> int | None:
    """Return the NUMA node of the nearest object that has one node alone."""
    sets = [_bits(one.get("nodeset", "")) for one in around if one.get("nodeset")]
    return sets[-1][0] if sets and len(sets[-1]) == 1 else None


def _bits(text: str) -> tuple[int, ...]:
    """Return the numbers of a set: words of 32 bits, the highest first; an endless one has none."""
    if not _SET.match(text) or "..." in text:
        return ()
    bits = 0
    for word in text.split(","):
        bits = bits << 32 | int(word.removeprefix("0x") or "0", 16)
    return tuple(bit for bit in range(bits.bit_length()) if bits >> bit & 1)
