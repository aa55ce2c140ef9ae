"""The site profile of a lab: its text, and the path where `--site lab` finds it."""

from __future__ import annotations

import os
from pathlib import Path

from hpc_train.errors import LabError
from hpc_train.lab.settings import Settings
from hpc_train.lab.slurm_programs import path_line
from hpc_train.model.value import Value

MARK = "# Made by `hpctrain lab up`; `hpctrain lab down` removes it."

_PROFILE = """\
{mark}
schema: 1
name: lab
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
detect: {{clusters: [lab]}}
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


def profile_path() -> Path:
    """Return the path of the lab's profile, in the folder of the user's profiles."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "hpctrain" / "lab.yaml"


def is_ours(path: Path) -> bool:
    """Whether a profile was written by `install`."""
    return path.is_file() and path.read_text(encoding="utf-8", errors="replace").startswith(MARK)


def check_place(path: Path) -> None:
    """Refuse to replace a profile that `install` did not write.

    Raises:
        LabError: there is one.
    """
    if path.exists() and not is_ours(path):
        raise LabError(
            f"{path} was not written by hpctrain", "rename it; the lab's profile needs this name"
        )


def install(path: Path, text: str) -> tuple[str, ...]:
    """Write the profile; return the folders that were created, innermost first."""
    made = [str(parent) for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return tuple(made)


def remove(path: Path, folders: tuple[str, ...]) -> None:
    """Remove the lab's profile, and the folders created for it if they are empty."""
    if is_ours(path):
        path.unlink()
    for folder in map(Path, folders):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
