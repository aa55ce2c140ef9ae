"""The site profile of a lab: its text, and the link by which `--site lab` finds it."""

from __future__ import annotations

from hpc_train.base.data_folders import LAB_FOLDER
from hpc_train.base.value import Value
from hpc_train.lab.settings import NAME, Settings
from hpc_train.lab.slurm_programs import path_line

MARK = "# Made by `hpctrain lab up`; `hpctrain lab down` removes it."

_PROFILE = """\
{mark}
schema: 1
name: {name}
description: A real Slurm on this one machine ({nodes}), made by hpctrain lab
scheduler: slurm
slurm: "{version}"
sources:
  - what: the settings of the lab
    date: {date}
    confidence: high
launchers:
  default: torchrun
  allowed: [{launchers}]
{forbidden}\
{mpi}\
partitions:
  - name: gpu
    default: true
    max_time: 1h
{size}\
  - name: long
{size}\
rendezvous:
  host: first-host
gpu_request: gpus-per-node
poll: 2s
slurm_conf: {folder}/slurm.conf
detect: {{clusters: [{name}]}}
{setup}\
env:
  GLOO_SOCKET_IFNAME: ib0
  OMPI_ALLOW_RUN_AS_ROOT: 1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: 1
env_why:
  GLOO_SOCKET_IFNAME: eth0 is shaped to {rate}, ib0 is as fast as the machine
  OMPI_ALLOW_RUN_AS_ROOT: jobs of the lab run as root, which mpirun refuses otherwise
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: mpirun requires both variables
"""

# A job with --export=NONE does not have the PATH of its user.
_SETUP = "setup:\n  - {line}\n"
_NO_MPIRUN = "  forbidden: {mpirun: not installed on this machine (apt-get install openmpi-bin)}\n"


class MpiPrograms(Value, frozen=True, kw_only=True):
    """The MPI programs of this machine."""

    pmix: bool
    mpirun: bool


def profile_text(settings: Settings, found: MpiPrograms, version: str, date: str) -> str:
    """Return the profile of a lab."""
    mpirun = ["mpirun"] if found.mpirun else []
    launchers = ["torchrun", "srun", *mpirun, "accelerate", "deepspeed", "spawn", "single"]
    return _PROFILE.format(
        mark=MARK,
        name=NAME,
        nodes=f"{settings.nodes} nodes" if settings.nodes > 1 else "1 node",
        date=date,
        version=version,
        launchers=", ".join(launchers),
        forbidden="" if found.mpirun else _NO_MPIRUN,
        mpi="  mpi: pmix\n" if found.pmix else "",
        size=_size(settings),
        rate=settings.eth0_rate,
        folder=settings.folder,
        setup=_SETUP.format(line=path_line(settings.slurm_prefix)) if settings.slurm_prefix else "",
    )


def _size(settings: Settings) -> str:
    facts: dict[str, object] = {
        "max_nodes": settings.nodes,
        "cpus_per_node": settings.cpus,
        "gpus_per_node": settings.gpus,
        "mem_per_node": settings.mem,
    }
    if settings.gpus:
        facts["gpu_type"] = f'"{settings.gpu_type}"'
    return "".join(f"    {key}: {value}\n" for key, value in facts.items())


# Where every user of this machine finds the profile of a lab by its name.
PROFILE_LINK = LAB_FOLDER / f"{NAME}.yaml"


def publish(settings: Settings) -> None:
    """Make the link."""
    withdraw()
    LAB_FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    PROFILE_LINK.symlink_to(f"{settings.folder}/{NAME}.yaml")


def withdraw() -> None:
    """Remove what `publish` made."""
    PROFILE_LINK.unlink(missing_ok=True)
    if LAB_FOLDER.is_dir() and not any(LAB_FOLDER.iterdir()):
        LAB_FOLDER.rmdir()
