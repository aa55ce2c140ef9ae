"""The backend of torch.distributed for a job, and the unsupported backends."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.base.errors import PlanError
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context, other_launchers, rule
from hpc_train.plans.plan import Setting
from hpc_train.sites.partition import Network

VARIABLE = "HPCTRAIN_BACKEND"
_SOURCE = "PyTorch, torch.distributed: which backend to use"
_FSDP = ("fsdp", "fsdp2")


def resolve_backend(context: Context, topology: Topology) -> Setting:
    """Return the backend; `auto` follows PyTorch's own rules.

    Raises:
        PlanError: the backend does not support the job.
    """
    job, site = context.job, context.site
    for sourced in (job, site):
        if VARIABLE in sourced.value.env:
            raise PlanError(
                f"{sourced.near(f'env.{VARIABLE}')}: {VARIABLE} is set by the job's backend",
                "write `backend: nccl`, gloo or mpi in the job, or --set backend=gloo",
            )
    if job.value.backend == "auto":
        return _automatic(context, topology)
    chosen = Setting(value=job.value.backend, origin=job.origin("backend"))
    if chosen.value == "nccl" and not topology.gpus_per_node:
        raise PlanError(
            f"{chosen.origin}: backend nccl needs GPUs, and the job has none",
            "ask for them with resources.gpus_per_node, or take backend gloo",
        )
    if chosen.value == "mpi":
        _check_mpi(chosen, context)
    return chosen


def follows_from_gpus(topology: Topology) -> str:
    """Return the backend that torch selects for these devices."""
    return "nccl" if topology.gpus_per_node else "gloo"


def asks_for_fsdp(command: Sequence[str]) -> bool:
    """Return whether the arguments of a program enable sharding of the model: `--fsdp`, "
    "`--strategy fsdp`."""
    words = [word.lower() for word in command]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, _, value = word.partition("=")
        if word == "--fsdp" or (option == "--strategy" and (value or following) in _FSDP):
            return True
    return False


def _automatic(context: Context, topology: Topology) -> Setting:
    job, network = context.job, context.site.value.network or Network()
    gpus = topology.gpus_per_node > 0
    if gpus and network.gpus == "intel":
        return Setting(value="xccl", origin="rule", why="Intel's GPUs: xccl", source=_SOURCE)
    if gpus:
        why = "GPUs: nccl alone reaches InfiniBand and GPUs directly; AMD's RCCL has that name, too"
        return Setting(value="nccl", origin="rule", why=why, source=_SOURCE)
    if network.fabric != "infiniband" or network.ip_over_ib is not False:
        return Setting(value="gloo", origin="rule", why="CPUs: gloo", source=_SOURCE)
    without_ip, obstacle = "CPUs, and InfiniBand that carries no IP", ""
    if not network.torch_mpi:
        obstacle = "the profile does not say that torch has MPI (network.torch_mpi)"
    elif not context.launcher.mpi:
        obstacle = f"{context.launcher.name} does not start MPI's ranks"
    elif asks_for_fsdp(job.value.command):
        obstacle = "mpi cannot carry FSDP"
    if obstacle:
        return rule("gloo", f"{without_ip}, but {obstacle}: gloo, over another network")
    return Setting(value="mpi", origin="rule", why=f"{without_ip}: mpi", source=_SOURCE)


def _check_mpi(chosen: Setting, context: Context) -> None:
    job, site, launcher = context.job, context.site, context.launcher
    network = site.value.network or Network()
    if network.torch_mpi is False:
        place = site.near("network.torch_mpi")
        raise PlanError(
            f"{chosen.origin}: backend mpi, but {site.value.name}'s torch has no MPI ({place})",
            "take backend gloo or nccl; every launcher works with them",
        )
    if not (launcher.mpi or launcher.one_rank):
        raise PlanError(
            f"{chosen.origin}: backend mpi needs ranks that MPI knows; {launcher.name} starts "
            "others",
            f"{other_launchers(context, lambda one: one.mpi)}, or backend gloo",
        )
    if asks_for_fsdp(job.value.command):
        raise PlanError(
            f"{chosen.origin}: backend mpi cannot carry FSDP: it has no reduce_scatter",
            "take backend nccl on GPUs or gloo on CPUs",
        )
