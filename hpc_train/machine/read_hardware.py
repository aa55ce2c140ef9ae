"""The output of the probe script -> Hardware."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from hpc_train.base.errors import ProbeError
from hpc_train.base.processes import answer_of, environment, printable, run, whole
from hpc_train.machine.hardware import (
    Disk,
    Gpu,
    Hardware,
    Layer,
    Link,
    Port,
    ProcessLimits,
    Software,
    Torch,
)
from hpc_train.machine.probe_script import TOPOLOGY, Section, probe_script, sections
from hpc_train.machine.read_topology import nvidia_gpus, processor, read_topology, rocm_gpus
from hpc_train.plans.node_topology import NodeTopology

_PATIENCE_S = 240.0
_EMPTY = Section(text="", returncode=1)
# Programs that every Linux has; for others only invalid output is reported.
_ALWAYS = ("cpus", "interfaces", "disks")


def this_hardware(reach: str | None = None) -> Hardware:
    """Inspect this machine.

    Raises:
        ProbeError: there is no bash.
        SpecError: `reach` is not a host.
    """
    return read_hardware(_run(probe_script(reach)))


def this_topology() -> tuple[NodeTopology, tuple[str, ...]]:
    """Return the topology of this machine, and what could not be read of it.

    Raises:
        ProbeError: there is no bash.
    """
    found = read_hardware(_run(probe_script(only=TOPOLOGY)), TOPOLOGY)
    return found.topology, found.unread


def _run(script: str) -> str:
    kept = environment()
    for name in ("SLURM_JOB_ID", "SLURM_CONF"):
        if name in os.environ:
            kept[name] = os.environ[name]
    answer = answer_of(run(("bash", "-c", script), _PATIENCE_S, environment=kept))
    if answer.problem:
        raise ProbeError(f"bash: {answer.problem}")
    return answer.text


def read_hardware(text: str, expected: Sequence[str] = _ALWAYS) -> Hardware:
    """Parse the output of the probe script, which may be incomplete.

    `expected` names the sections that were run; of these, a missing one is reported.
    """
    found = sections(text)
    host, arch = (*found.get("host", _EMPTY).text.split()[:2], "", "")[:2]
    gpus = _gpus(found)
    return Hardware(
        host=printable(host),
        arch=printable(arch),
        processor=processor(_text(found, "cpus")),
        gpus=gpus,
        topology=read_topology(printable(host), gpus, found),
        links=links(_text(found, "addresses"), _text(found, "interfaces")),
        ports=ports(_text(found, "ports")),
        disks=disks(_text(found, "disks")),
        software=software(found),
        limits=_limits(found),
        reached=found["reach"].text.strip() == "yes" if "reach" in found else None,
        unread=_unread(found, gpus, [one for one in _ALWAYS if one in expected]),
    )


def _text(found: Mapping[str, Section], name: str) -> str:
    return found.get(name, _EMPTY).text


def _gpus(found: Mapping[str, Section]) -> tuple[Gpu, ...]:
    nvidia = nvidia_gpus(_text(found, "nvidia"))
    return nvidia or rocm_gpus(_text(found, "rocm"), _text(found, "rocm_bus"))


def _limits(found: Mapping[str, Section]) -> ProcessLimits:
    memlock = setting(found, "memlock")
    shm = file_systems(_text(found, "shm"))
    memory = whole(setting(found, "memory"))
    return ProcessLimits(
        memlock_kib=-1 if memlock == "unlimited" else whole(memlock),
        open_files=whole(setting(found, "open_files")),
        shm_mib=shm[0].size_mib if shm else None,
        memory_mib=memory // 1024 if memory else None,
    )


def _unread(
    found: Mapping[str, Section], gpus: tuple[Gpu, ...], expected: Sequence[str]
) -> tuple[str, ...]:
    said = [
        f"could not be read: {name}: {section.problem}"
        for name, section in found.items()
        if section.problem
    ]
    said += [f"could not be read: {name}" for name in expected if name not in found]
    section = found.get("nvidia", _EMPTY)
    if not gpus and not section.absent and not section.problem and "nvidia" in found:
        words = printable((section.text.strip().splitlines() or ["no answer"])[-1])
        said.append(f"could not be read: nvidia-smi: {words}")
    return tuple(said)


_KINDS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs")
_SYSTEM = (
    "/boot",
    "/efi",
    "/etc",
    "/home",
    "/nix",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/snap",
    "/srv",
    "/sys",
    "/usr",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/var/cache",
)


def disks(text: str) -> tuple[Disk, ...]:
    """Return the mounted disks, without those of the operating system."""
    return tuple(
        disk
        for disk in file_systems(text)
        if disk.kind in _KINDS and disk.path not in ("/", "/var") and not _is_system(disk.path)
    )


def file_systems(text: str) -> tuple[Disk, ...]:
    """Read all lines: device, type, sizes in KiB, percentage used, mount point."""
    rows = (line.split(None, 6) for line in text.splitlines())
    return tuple(
        Disk(path=row[6], kind=row[1], size_mib=size // 1024, free_mib=free // 1024)
        for row in rows
        if len(row) == 7 and row[6].startswith("/")
        if (size := whole(row[2])) is not None and (free := whole(row[4])) is not None
    )


def _is_system(path: str) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in _SYSTEM)) or path in _SYSTEM


_OPEN_MPI = re.compile(r"\(Open MPI\) (\d+(?:\.\d+)*)")
_NAME = re.compile(r"[a-z][a-z0-9-]*")


def software(found: Mapping[str, Section]) -> Software:
    """Read the sections of the probe script on software."""
    programs = found.get("programs", _EMPTY).text.split()
    version = _OPEN_MPI.search(found.get("mpirun", _EMPTY).text)
    return Software(
        programs=tuple(name for name in programs if _NAME.fullmatch(name)),
        modules=_modules(setting(found, "modules")),
        pyxis=_count(found.get("pyxis", _EMPTY)) > 0,
        mpirun=version[1] if version else "",
        mpirun_knows_slurm=_knows_slurm(found.get("ompi_info", _EMPTY)),
        torch=torch(found.get("torch", _EMPTY).text),
    )


def setting(found: Mapping[str, Section], name: str) -> str:
    """Return a value of the section `settings`."""
    for line in found.get("settings", _EMPTY).text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return value.strip()
    return ""


def torch(text: str) -> Torch | None:
    """Read the last line of the output on torch; warnings may precede it."""
    lines = text.strip().splitlines()
    try:
        report: Any = msgspec.json.decode(lines[-1].encode() if lines else b"")
        return msgspec.convert(report, Torch)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _modules(text: str) -> str:
    lmod, _, home = text.partition("|")
    if lmod:
        return f"Lmod {lmod}"
    return f"environment modules in {home}" if home else ""


def _knows_slurm(section: Section) -> bool | None:
    """Read the count of grep, whose exit code is 1 if the count is 0."""
    count = whole(section.text.strip())
    return None if count is None else count > 0


def _count(section: Section) -> int:
    return whole(section.text.strip()) or 0


LinkKind = Literal["ethernet", "infiniband", "loopback", "other"]

_INTERFACES_KINDS: dict[str, LinkKind] = {
    "ether": "ethernet",
    "1": "ethernet",
    "infiniband": "infiniband",
    "32": "infiniband",
    "loopback": "loopback",
    "772": "loopback",
}
_MADE_UP = re.compile(
    r"(docker|veth|virbr|br-|cni|flannel|cali|tun|tap|dummy|ifb|lxc|podman|kube|vxlan|tailscale|wg)"
)
# They combine physical interfaces.
_JOINED = ("bond", "team")
_RATE = re.compile(r"^([0-9]+)(\.[0-9]+)? Gb/sec")


def links(addresses: str, interfaces: str) -> tuple[Link, ...]:
    """Combine the output of `ip` and /sys, which may differ inside a network namespace."""
    known = {line.split()[0]: line.split() for line in interfaces.splitlines() if line.strip()}
    known = {name: cells for name, cells in known.items() if len(cells) == 5}
    found = [_from_ip(item, known.get(str(item.get("ifname")))) for item in _items(addresses)]
    return tuple(found) or tuple(_from_sys(*cells) for cells in known.values())


def ports(text: str) -> tuple[Port, ...]:
    """Read one line for each port: adapter|number|state|rate|link_layer|driver."""
    rows = (line.split("|") for line in text.splitlines())
    return tuple(_port(row) for row in rows if len(row) == 6)


def _port(row: list[str]) -> Port:
    adapter, number, state, rate, layer, driver = row
    known: dict[str, Layer] = {"InfiniBand": "InfiniBand", "Ethernet": "Ethernet"}
    speed = _RATE.match(rate)
    return Port(
        adapter=adapter,
        number=whole(number) or 1,
        active="ACTIVE" in state,
        gbps=whole(speed[1]) if speed else None,
        layer=known.get(layer, "other"),
        driver=driver,
    )


def _items(text: str) -> Iterator[dict[str, Any]]:
    try:
        document: Any = msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return
    for item in document if isinstance(document, list) else ():
        # Some versions print an empty object for filtered interfaces.
        if isinstance(item, dict) and isinstance(item.get("ifname"), str):
            yield item


def _from_ip(item: dict[str, Any], known: list[str] | None) -> Link:
    name, flags = item["ifname"], item.get("flags") or ()
    given = item.get("addr_info") or ()
    local = [str(one["local"]) for one in given if isinstance(one, dict) and "local" in one]
    return Link(
        name=name,
        # A tunnel or a loopback has no state.
        up=item.get("operstate") == "UP" or (item.get("operstate") == "UNKNOWN" and "UP" in flags),
        kind=_INTERFACES_KINDS.get(str(item.get("link_type")), "other"),
        addresses=tuple(local),
        mbps=_speed(known[3]) if known else None,
        virtual=_MADE_UP.match(name) is not None,
    )


def _from_sys(name: str, kind: str, state: str, speed: str, virtual: str) -> Link:
    return Link(
        name=name,
        up=state in ("up", "unknown"),
        kind=_INTERFACES_KINDS.get(kind, "other"),
        mbps=_speed(speed),
        virtual=(virtual == "1" and not name.startswith(_JOINED))
        or _MADE_UP.match(name) is not None,
    )


def _speed(text: str) -> int | None:
    """Return the speed; -1, or 2**32 - 1, means that no cable is connected."""
    speed = whole(text)
    return speed if speed and speed < 10_000_000 else None
