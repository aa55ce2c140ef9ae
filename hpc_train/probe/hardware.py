"""The output of the probe script -> Hardware."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from hpc_train.errors import ProbeError
from hpc_train.model.hardware import Gpu, Hardware, ProcessLimits
from hpc_train.model.node_topology import NodeTopology
from hpc_train.probe.gpu_tools import nvidia_gpus, rocm_gpus
from hpc_train.probe.local_disks import disks, file_systems
from hpc_train.probe.network_interfaces import links, ports
from hpc_train.probe.probe_script import TOPOLOGY, Section, probe_script, sections
from hpc_train.probe.processor import processor
from hpc_train.probe.read_topology import read_topology
from hpc_train.probe.run_program import answer_of, environment, printable, whole
from hpc_train.probe.software import setting, software
from hpc_train.subprocesses import run

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
