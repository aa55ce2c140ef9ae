"""Hardware and Cluster -> problems, with their remedies."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.base.finding import Finding, Severity
from hpc_train.machine.hardware import Hardware
from hpc_train.machine.infer_settings import usable
from hpc_train.slurm.live_cluster import Cluster

_SHM_MIB = 1024
_FILES = 4096


def advise(hardware: Hardware, cluster: Cluster | None) -> tuple[Finding, ...]:
    """Return the problems in the order of the printed sections; `id` is the section."""
    return (
        *_slurm(cluster),
        *_launchers(hardware, cluster),
        *_torch(hardware),
        *_network(hardware),
        *_limits(hardware),
    )


def _slurm(cluster: Cluster | None) -> Iterator[Finding]:
    if cluster is None:
        return
    if not cluster.partitions:
        said = "Slurm shows no partition that you may use"
        yield _found("slurm", "error", said, "request an account from the site")
    down = [one.name for one in cluster.partitions if one.state not in ("", "UP")]
    if down:
        said = f"not up: {', '.join(down)}"
        yield _found("slurm", "warning", said, "jobs there wait; see scontrol show partition")


def _launchers(hardware: Hardware, cluster: Cluster | None) -> Iterator[Finding]:
    software = hardware.software
    if cluster is not None and cluster.mpi.broken:
        yield _found(
            "launchers",
            "warning",
            f"srun lists {', '.join(cluster.mpi.broken)}, but cannot load it: no such library",
            "use another --mpi=…, or contact the site",
        )
    working = set(cluster.mpi.plugins) - set(cluster.mpi.broken) if cluster else set()
    if working and "pmix" not in working:
        yield _found(
            "launchers",
            "info",
            "srun has no working PMIx, which Open MPI 5 needs",
            "start the ranks with mpirun, or with torchrun, which needs no MPI",
        )
    if cluster is not None and software.mpirun and software.mpirun_knows_slurm is False:
        yield _found(
            "launchers",
            "warning",
            f"Open MPI {software.mpirun} has no Slurm support: mpirun starts all ranks on one node",
            "load the MPI module of the site, or use the launcher torchrun",
        )


def _torch(hardware: Hardware) -> Iterator[Finding]:
    torch = hardware.software.torch
    if torch is None or not hardware.gpus:
        return
    if not torch.cuda and not torch.hip:
        yield _found(
            "torch",
            "error",
            f"{len(hardware.gpus)} GPUs, but torch {torch.version} is built for CPUs only",
            "install torch for this driver's CUDA or ROCm",
        )
    elif not torch.devices:
        yield _found(
            "torch",
            "error",
            f"torch {torch.version} can use none of {len(hardware.gpus)} GPUs",
            "the driver may be too old for this torch; also check CUDA_VISIBLE_DEVICES",
        )
    elif "nccl" not in torch.backends:
        said = f"torch {torch.version} has no NCCL; its backends: {', '.join(torch.backends)}"
        yield _found("torch", "error", said, "install a build with NCCL (on AMD: RCCL)")


def _network(hardware: Hardware) -> Iterator[Finding]:
    down = [
        one.name
        for one in hardware.links
        if not one.up and not one.virtual and one.kind != "loopback"
    ]
    fast = [name for name in down if name.startswith(("ib", "hsn"))]
    if fast:
        said = f"down: {', '.join(fast)}"
        yield _found("network", "warning", said, "contact the site; ip link shows the state")
    adapters = dict.fromkeys(port.adapter for port in hardware.ports)
    active = {port.adapter for port in hardware.ports if port.active}
    dead = [name for name in adapters if name not in active]
    if dead:
        yield _found(
            "network",
            "warning" if active else "error",
            f"no active port: {', '.join(dead)}",
            "remove them from network.hcas; ibstat shows the reason",
        )
    if hardware.links and not usable(hardware):
        yield _found(
            "network",
            "warning",
            "no interface to other machines is up",
            "jobs of one node can use the interface lo",
        )
    if hardware.reached is False:
        yield _found(
            "network", "info", "the host was not reachable", "download data before the job"
        )


def _limits(hardware: Hardware) -> Iterator[Finding]:
    limits = hardware.limits
    if hardware.ports and limits.memlock_kib not in (None, -1):
        yield _found(
            "limits",
            "error",
            f"ulimit -l is {limits.memlock_kib} KiB: RDMA cannot register memory",
            "the site must set memlock to unlimited, also for slurmd (LimitMEMLOCK)",
        )
    if limits.shm_mib is not None and limits.shm_mib < _SHM_MIB:
        yield _found(
            "limits",
            "warning",
            f"{limits.shm_mib} MiB in /dev/shm: data loaders and NCCL need it for shared memory",
            "in a container: --shm-size=8g or --ipc=host",
        )
    if limits.open_files is not None and limits.open_files < _FILES:
        yield _found(
            "limits",
            "info",
            f"ulimit -n is {limits.open_files}: many ranks and data loaders need more files",
            f"ulimit -n {_FILES} in the job's setup, at most `ulimit -Hn`",
        )


def _found(section: str, severity: Severity, message: str, advice: str) -> Finding:
    return Finding(id=section, severity=severity, message=message, advice=advice)
