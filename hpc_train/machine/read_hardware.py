"""The output of the probe script -> Hardware."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from hpc_train.base.errors import ProbeError
from hpc_train.base.processes import answer_of, environment, printable, run, whole
from hpc_train.machine.hardware import (
    Gpu,
    Hardware,
    Layer,
    Link,
    LinkKind,
    Port,
    ProcessLimits,
    Software,
    Torch,
)
from hpc_train.machine.probe_script import ABSENT, Section, probe_script, sections
from hpc_train.machine.read_topology import nvidia_gpus, processor, read_topology, rocm_gpus

_PATIENCE_S = 240.0
# Programs that every Linux has; for others only invalid output is reported.
_ALWAYS = ("cpus", "interfaces")


def this_hardware() -> Hardware:
    """Inspect this machine.

    Raises:
        ProbeError: there is no bash.
    """
    here = {name: os.environ[name] for name in ("SLURM_JOB_ID", "SLURM_CONF") if name in os.environ}
    command = ("bash", "-c", probe_script())
    answer = answer_of(run(command, _PATIENCE_S, environment=environment() | here))
    if answer.problem:
        raise ProbeError(f"bash: {answer.problem}")
    return read_hardware(answer.text)


def read_hardware(text: str) -> Hardware:
    """Parse the output of the probe script, which may be incomplete."""
    found = sections(text)
    texts = defaultdict(str, {name: section.text for name, section in found.items()})
    host, arch, *_ = (*map(printable, texts["host"].split()), "", "")
    gpus = nvidia_gpus(texts["nvidia"]) or rocm_gpus(texts["rocm"])
    pairs = (line.partition(" ") for line in texts["settings"].splitlines())
    settings = defaultdict(str, {key: value.strip() for key, _, value in pairs})
    # The last line: device, type, size in KiB, …
    shm = whole("".join(texts["shm"].split()[-5:-4]))
    memory = whole(settings["memory"])
    return Hardware(
        host=host,
        arch=arch,
        processor=processor(texts["cpus"]),
        gpus=gpus,
        topology=read_topology(gpus, texts),
        links=links(texts["addresses"], texts["interfaces"]),
        ports=ports(texts["ports"]),
        software=_software(texts, settings["modules"]),
        limits=ProcessLimits(
            memlock_kib=-1 if settings["memlock"] == "unlimited" else whole(settings["memlock"]),
            open_files=whole(settings["open_files"]),
            shm_mib=shm // 1024 if shm else None,
            memory_mib=memory // 1024 if memory else None,
        ),
        unread=tuple(f"could not be read: {said}" for said in _unread(found, gpus)),
    )


def _unread(found: Mapping[str, Section], gpus: tuple[Gpu, ...]) -> Iterator[str]:
    yield from (f"{name}: {one.problem}" for name, one in found.items() if one.problem)
    yield from (name for name in _ALWAYS if name not in found)
    driver = found.get("nvidia")
    if driver and not gpus and driver.returncode != ABSENT and not driver.problem:
        yield f"nvidia-smi: {printable((driver.text.strip().splitlines() or ['no answer'])[-1])}"


_OPEN_MPI = re.compile(r"\(Open MPI\) (\d+(?:\.\d+)*)")
_NAME = re.compile(r"[a-z][a-z0-9-]*")


def _software(texts: Mapping[str, str], modules: str) -> Software:
    version = _OPEN_MPI.search(texts["mpirun"])
    lmod, _, home = modules.partition("|")
    # Counts of grep.
    slurm, pyxis = (whole(texts[name].strip()) for name in ("ompi_info", "pyxis"))
    return Software(
        programs=tuple(name for name in texts["programs"].split() if _NAME.fullmatch(name)),
        modules=f"Lmod {lmod}" if lmod else f"environment modules in {home}" if home else "",
        pyxis=bool(pyxis),
        mpirun=version[1] if version else "",
        mpirun_knows_slurm=None if slurm is None else slurm > 0,
        torch=_torch(texts["torch"]),
    )


def _torch(text: str) -> Torch | None:
    """Read the last line of the output on torch; warnings may precede it."""
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode((text.strip().splitlines() or [""])[-1], type=Torch)
    return None


# Words of `ip`, numbers of /sys.
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


class _Address(msgspec.Struct):
    local: str = ""


class _Interface(msgspec.Struct):
    """An interface as `ip -j addr` prints it."""

    ifname: str = ""
    link_type: str = ""
    operstate: str = ""
    flags: list[str] = []
    addr_info: list[_Address] = []
    virtual: bool = False


def links(addresses: str, interfaces: str) -> tuple[Link, ...]:
    """Return what `ip` prints, with the speeds of /sys; without an answer of `ip`, /sys alone.

    The two may differ inside a network namespace.
    """
    rows = [line.split() for line in interfaces.splitlines()]
    known = {row[0]: row for row in rows if len(row) == 5}
    found = [
        _Interface(
            ifname=name,
            link_type=kind,
            operstate=state.upper(),
            flags=["UP"],
            virtual=virtual == "1" and not name.startswith(_JOINED),
        )
        for name, kind, state, _, virtual in known.values()
    ]
    with suppress(msgspec.DecodeError):
        said = msgspec.json.decode(addresses, type=list[_Interface])
        # Some versions print an empty object for filtered interfaces.
        found = [one for one in said if one.ifname] or found
    return tuple(
        Link(
            name=one.ifname,
            # A tunnel or a loopback has no state.
            up=one.operstate == "UP" or (one.operstate == "UNKNOWN" and "UP" in one.flags),
            kind=_INTERFACES_KINDS.get(one.link_type, "other"),
            addresses=tuple(each.local for each in one.addr_info if each.local),
            mbps=_speed(known[one.ifname][3]) if one.ifname in known else None,
            virtual=one.virtual or _MADE_UP.match(one.ifname) is not None,
        )
        for one in found
    )


def _speed(text: str) -> int | None:
    """Return the speed; -1, or 2**32 - 1, means that no cable is connected."""
    speed = whole(text)
    return speed if speed and speed < 10_000_000 else None


def ports(text: str) -> tuple[Port, ...]:
    """Read one line for each port: adapter|number|state|rate|link_layer|driver."""
    known: dict[str, Layer] = {"InfiniBand": "InfiniBand", "Ethernet": "Ethernet"}
    rows = (line.split("|") for line in text.splitlines())
    return tuple(
        Port(
            adapter=adapter,
            number=whole(number) or 1,
            active="ACTIVE" in state,
            gbps=whole(speed[1]) if (speed := _RATE.match(rate)) else None,
            layer=known.get(layer, "other"),
            driver=driver,
        )
        for adapter, number, state, rate, layer, driver in (row for row in rows if len(row) == 6)
    )
