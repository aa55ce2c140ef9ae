"""This machine and its Slurm -> inventory and problems."""

import shutil
from collections.abc import Callable, Iterator
from typing import TypeVar

from hpc_train.base.errors import ProbeError
from hpc_train.base.values import Finding, Severity, Value, has_errors
from hpc_train.machine.hardware import Hardware, usable
from hpc_train.machine.read_hardware import this_hardware
from hpc_train.pbs.live_pbs import LivePbs, read_pbs
from hpc_train.sites.detection import detect_site, is_pbs, this_host
from hpc_train.slurm.live_cluster import Cluster, read_cluster

T = TypeVar("T")


class Examined(Value, frozen=True, kw_only=True):
    """The result: `profiles` are the site profiles that match this host."""

    hardware: Hardware
    cluster: Cluster | None
    advice: tuple[Finding, ...]
    profiles: tuple[str, ...] = ()
    pbs: LivePbs | None = None

    @property
    def scheduler(self) -> str:
        """Return the title of the section on the scheduler: `pbs`, else `slurm`."""
        of_pbs = self.pbs is not None or any(one.id == "pbs" for one in self.advice)
        return "pbs" if of_pbs and self.cluster is None else "slurm"

    @property
    def failed(self) -> bool:
        """Whether a problem prevents jobs from working."""
        return has_errors(self.advice)


def examine() -> Examined:
    """Inspect this machine and its scheduler.

    Raises:
        ProbeError: there is no bash.
    """
    hardware = this_hardware()
    silent: list[Finding] = []
    hint = "set SLURM_CONF, or check whether the controller is up"
    cluster = _asked("Slurm", read_cluster, hint, silent) if shutil.which("scontrol") else None
    hint = "check whether the server is up: qstat -B"
    pbs = _asked("PBS", read_pbs, hint, silent) if is_pbs() else None
    return Examined(
        hardware=hardware,
        cluster=cluster,
        advice=(*advise(hardware, cluster), *silent),
        profiles=tuple(match.name for match in detect_site(this_host()).matches),
        pbs=pbs,
    )


def _asked(title: str, read: Callable[[], T], hint: str, silent: list[Finding]) -> T | None:
    """Return the answers of a scheduler; None, and a finding in `silent`, if it has none."""
    try:
        return read()
    except ProbeError as failure:
        said = f"{title}'s commands are installed, but do not answer: {failure.message}"
        silent.append(Finding(id=title.lower(), severity="warning", message=said, advice=hint))
        return None


_SHM_MIB = 1024
_FILES = 4096
# Severity, message, advice.
Problems = Iterator[tuple[Severity, str, str]]


def advise(hardware: Hardware, cluster: Cluster | None) -> tuple[Finding, ...]:
    """Return the problems in the order of the printed sections; `id` is the section."""
    sections = {
        "slurm": _slurm(cluster) if cluster else (),
        "launchers": _launchers(hardware, cluster) if cluster else (),
        "torch": _torch(hardware),
        "network": _network(hardware),
        "limits": _limits(hardware),
    }
    return tuple(
        Finding(id=section, severity=severity, message=message, advice=advice)
        for section, problems in sections.items()
        for severity, message, advice in problems
    )


def _slurm(cluster: Cluster) -> Problems:
    if not cluster.partitions:
        said = "Slurm shows no partition that you may use"
        yield "error", said, "request an account from the site"
    if down := [one.name for one in cluster.partitions if one.state not in ("", "UP")]:
        said = f"not up: {', '.join(down)}"
        yield "warning", said, "jobs there wait; see scontrol show partition"


def _launchers(hardware: Hardware, cluster: Cluster) -> Problems:
    software, broken = hardware.software, cluster.mpi.broken
    if broken:
        said = f"srun lists {', '.join(broken)}, but cannot load it: no such library"
        yield "warning", said, "use another --mpi=…, or contact the site"
    working = set(cluster.mpi.plugins) - set(broken)
    if working and "pmix" not in working:
        said = "srun has no working PMIx, which Open MPI 5 needs"
        yield "info", said, "start the ranks with mpirun, or with torchrun, which needs no MPI"
    if software.mpirun and software.mpirun_knows_slurm is False:
        said = f"Open MPI {software.mpirun} has no Slurm support: mpirun starts all ranks on one"
        advice = "load the MPI module of the site, or use the launcher torchrun"
        yield "warning", f"{said} node", advice


def _torch(hardware: Hardware) -> Problems:
    torch, gpus = hardware.software.torch, len(hardware.gpus)
    if torch is None or not gpus:
        return
    name = f"torch {torch.version}"
    if not torch.cuda and not torch.hip:
        advice = "install torch for this driver's CUDA or ROCm"
        yield "error", f"{gpus} GPUs, but {name} is built for CPUs only", advice
    elif not torch.devices:
        advice = "the driver may be too old for this torch; also check CUDA_VISIBLE_DEVICES"
        yield "error", f"{name} can use none of {gpus} GPUs", advice
    elif "nccl" not in torch.backends:
        said = f"{name} has no NCCL; its backends: {', '.join(torch.backends)}"
        yield "error", said, "install a build with NCCL (on AMD: RCCL)"


def _network(hardware: Hardware) -> Problems:
    links = [one for one in hardware.links if not one.virtual and one.kind != "loopback"]
    down = [one.name for one in links if not one.up and one.name.startswith(("ib", "hsn"))]
    if down:
        yield "warning", f"down: {', '.join(down)}", "contact the site; ip link shows the state"
    active = {port.adapter for port in hardware.ports if port.active}
    if dead := dict.fromkeys(p.adapter for p in hardware.ports if p.adapter not in active):
        advice = "remove them from network.hcas; ibstat shows the reason"
        yield "warning" if active else "error", f"no active port: {', '.join(dead)}", advice
    if hardware.links and not usable(hardware):
        said = "no interface to other machines is up"
        yield "warning", said, "jobs of one node can use the interface lo"


def _limits(hardware: Hardware) -> Problems:
    limits = hardware.limits
    if hardware.ports and limits.memlock_kib not in (None, -1):
        said = f"ulimit -l is {limits.memlock_kib} KiB: RDMA cannot register memory"
        advice = "the site must set memlock to unlimited, also for slurmd (LimitMEMLOCK)"
        yield "error", said, advice
    if limits.shm_mib is not None and limits.shm_mib < _SHM_MIB:
        said = f"{limits.shm_mib} MiB in /dev/shm: data loaders and NCCL need it for shared memory"
        yield "warning", said, "in a container: --shm-size=8g or --ipc=host"
    if limits.open_files is not None and limits.open_files < _FILES:
        said = f"ulimit -n is {limits.open_files}: many ranks and data loaders need more files"
        yield "info", said, f"ulimit -n {_FILES} in the job's setup, at most `ulimit -Hn`"
