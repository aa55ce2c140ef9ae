"""`hpctrain doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from hpc_train.base.registry import BUILT_IN
from hpc_train.base.values import encode_unit
from hpc_train.cli.output import busy

if TYPE_CHECKING:
    from hpc_train.machine.doctor import Examined
    from hpc_train.machine.hardware import Hardware
    from hpc_train.pbs.live_pbs import LivePbs
    from hpc_train.slurm.live_cluster import Cluster

Line = tuple[str, str]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(*, as_json: bool) -> int:
    """Inspect this machine and report problems; exit code 1 if jobs cannot work."""
    from hpc_train.machine.doctor import examine

    with busy("examining this machine"):
        found = examine()
    if as_json:
        click.echo(msgspec.json.encode(_json(found), enc_hook=encode_unit))
        return int(found.failed)
    for section, rows in _sections(found).items():
        click.secho(title := found.scheduler if section == "slurm" else section, bold=True)
        for name, value in [*rows] or [("none", "")]:
            click.echo(f"  {name:<12} {value}".rstrip())
        for one in found.advice:
            if one.id in (section, title):
                click.echo(f"  {one.severity}: {one.message}\n    {one.advice}")
    for message in (*found.hardware.unread, *(found.cluster.unread if found.cluster else ())):
        click.echo(message)
    return int(found.failed)


def _json(found: Examined) -> dict[str, Any]:
    names = ("severity", "message", "advice")
    return {
        "schema": 1,
        "ok": not found.failed,
        "hardware": found.hardware,
        "cluster": found.cluster,
        "pbs": found.pbs,
        "findings": [
            {"section": one.id, **{name: getattr(one, name) for name in names}}
            for one in found.advice
        ],
    }


def _sections(found: Examined) -> dict[str, Iterable[Line]]:
    """Return the lines of each section."""
    hardware = found.hardware
    slurm = _slurm(found.cluster) if found.cluster else ()
    pbs = _pbs(found.pbs) if found.pbs else ()
    return {
        "slurm": (*slurm, *pbs, *_profiles(found.profiles)),
        "launchers": _launchers(hardware, found.cluster),
        "torch": _torch(hardware),
        "gpus": _gpus(hardware),
        "network": _network(hardware),
        "limits": _limits(hardware),
        "containers": _containers(hardware),
    }


def _slurm(cluster: Cluster) -> Iterator[Line]:
    yield "cluster", f"{cluster.name}, Slurm {cluster.version or 'of unknown version'}"
    yield (
        "partitions",
        ", ".join(f"{one.name}{' (default)' if one.default else ''}" for one in cluster.partitions),
    )
    yield "nodes", str(len(cluster.nodes))
    gres = ", ".join(f"{g.count} {g.name} {g.kind}".strip() for g in cluster.gres)
    yield "gres", gres or "none"
    yield "accounting", "yes" if cluster.accounting else "no"
    yield "preemption", cluster.preemption or "ends no jobs"


def _pbs(pbs: LivePbs) -> Iterator[Line]:
    yield "PBS server", f"{pbs.name}, PBS {pbs.version or 'of unknown version'}"
    names = [f"{one.name}{' (default)' * (one.name == pbs.default_queue)}" for one in pbs.shown]
    yield "queues", ", ".join(names) or "none"
    yield "nodes", str(len({node.host for node in pbs.nodes})) if pbs.nodes else "unknown"
    yield "history", pbs.history or "none: states of finished jobs come from the files of runs"


def _profiles(names: Sequence[str]) -> Iterator[Line]:
    if names:
        yield "profile", f"{', '.join(names)}, by the name of this host or cluster"


def _launchers(hardware: Hardware, cluster: Cluster | None) -> Iterator[Line]:
    programs = [name for name in BUILT_IN["launchers"] if name in hardware.software.programs]
    if programs:
        yield "on the PATH", ", ".join(programs)
    if hardware.software.mpirun:
        yield "Open MPI", hardware.software.mpirun
    if cluster is not None and cluster.mpi.plugins:
        plugins = ", ".join(cluster.mpi.plugins)
        yield "srun --mpi", f"{plugins}; default {cluster.mpi.default or 'none'}"


def _torch(hardware: Hardware) -> Iterator[Line]:
    torch = hardware.software.torch
    if torch is None:
        return
    built = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "CPU"
    yield "version", f"{torch.version}, for {built}"
    yield "backends", ", ".join(torch.backends) or "none"
    if torch.nccl:
        yield "NCCL", torch.nccl


def _gpus(hardware: Hardware) -> Iterator[Line]:
    from hpc_train.machine.hardware import gpu_order
    from hpc_train.plans.binding import nearest_nics

    near = {one.gpu: one for one in hardware.topology.gpus}
    for gpu in hardware.gpus:
        place = near.get(gpu.index)
        words = [gpu.name, f"{gpu.memory_mib} MiB" if gpu.memory_mib else ""]
        if place is not None:
            words.append(f"NUMA node {place.numa}" if place.numa is not None else "")
            words.append(f"near {', '.join(nearest_nics(place))}" if place.nics else "")
        yield f"GPU {gpu.index}", ", ".join(filter(None, words))
    if order := gpu_order(hardware):
        yield "gpu_order", f"{list(order)}, by the cores of local ranks"


def _network(hardware: Hardware) -> Iterator[Line]:
    from hpc_train.machine.hardware import guess

    for link in hardware.links:
        if link.kind != "loopback" and not link.virtual:
            speed = f", {link.mbps} Mbit/s" if link.mbps else ""
            addresses = f", {' '.join(link.addresses[:2])}" if link.addresses else ""
            yield link.name, f"{'up' if link.up else 'down'}{speed}{addresses}"
    for port in hardware.ports:
        speed = f", {port.gbps} Gbit/s" if port.gbps else ""
        state = "active" if port.active else "not active"
        yield f"{port.adapter}:{port.number}", f"{state}, {port.layer}{speed}"
    network = guess(hardware)
    if network.fabric:
        taken = ", ".join(network.interfaces)
        yield "fabric", f"{network.fabric}? ({network.why}); sockets on {taken or 'nothing'}"


def _limits(hardware: Hardware) -> Iterator[Line]:
    limits, cpu = hardware.limits, hardware.processor
    if cpu is not None:
        threads = f", {cpu.threads_per_core} threads each" if cpu.threads_per_core else ""
        yield "CPUs", f"{cpu.cpus} {cpu.model}{threads}, {len(hardware.topology.numa)} NUMA nodes"
    memlock = "unlimited" if limits.memlock_kib == -1 else f"{limits.memlock_kib} KiB"
    yield "memlock", memlock if limits.memlock_kib is not None else "unknown"
    for name, number, unit in (
        ("open files", limits.open_files, ""),
        ("shm", limits.shm_mib, " MiB in /dev/shm"),
        ("memory", limits.memory_mib, " MiB"),
    ):
        if number is not None:
            yield name, f"{number}{unit}"


def _containers(hardware: Hardware) -> Iterator[Line]:
    names = ("apptainer", "singularity", "podman-hpc", "shifter", "enroot", "docker")
    programs = [name for name in names if name in hardware.software.programs]
    programs += ["pyxis"] if hardware.software.pyxis else []
    if programs:
        yield "runtimes", ", ".join(programs)
    if hardware.software.modules:
        yield "modules", hardware.software.modules
