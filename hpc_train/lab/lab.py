"""The lab and the twins of sites, on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hpc_train.base.errors import LabError
from hpc_train.lab import state_file
from hpc_train.lab.down import down
from hpc_train.lab.lab_status import LabState, state_of
from hpc_train.lab.settings import Settings, memory
from hpc_train.lab.slurm_programs import chosen_prefix
from hpc_train.lab.state_file import Lab
from hpc_train.lab.twins.start_and_stop import start, stop
from hpc_train.lab.twins.state_file import read_all
from hpc_train.lab.up import up
from hpc_train.sites.load import load_site


class StartedLab(NamedTuple):
    """A running lab; `is_new` is False if it was running before."""

    lab: Lab
    is_new: bool


class StartedTwin(NamedTuple):
    """A running twin, by the name of its site, and the folder of its `env`."""

    name: str
    folder: str
    accounting: bool
    is_new: bool
    assumptions: tuple[str, ...]


class RunningTwin(NamedTuple):
    """A running twin: the folder of its `env`, and its assumptions about the site."""

    folder: str
    assumptions: tuple[str, ...]


def start_lab(options: Mapping[str, Any], say: Callable[[str], None]) -> StartedLab:
    """Start the lab and wait until its nodes are idle.

    Raises:
        HpcTrainError: invalid options, or Slurm does not start.
    """
    mem = memory(options["mem"])
    settings = Settings(**{**options, "mem": mem, "slurm_prefix": chosen_prefix()})
    result = up(settings, say)
    return StartedLab(result.lab, result.made)


def stop_lab(folder: str | None) -> str:
    """Stop the lab in a folder, or the only lab; return its folder, or an empty string.

    Raises:
        LabError: there is no lab in `folder`, or it cannot be removed.
    """
    stopped = str(down(folder) or "")
    if folder is not None and not stopped:
        raise LabError(f"no lab in {folder}", "hpctrain lab status")
    return stopped


def lab_states(folder: str | None = None) -> dict[str, tuple[Lab, LabState]]:
    """Return the settings and states of the running labs by folder, or of that in `folder`."""
    labs = {lab.settings.folder: lab for lab in state_file.read_all()}
    return {where: (lab, state_of(lab)) for where, lab in labs.items() if folder in (None, where)}


def twins() -> dict[str, RunningTwin]:
    """Return the running twins, by the name of their sites."""
    return {one.name: RunningTwin(one.place.folder, one.assumptions) for one in read_all()}


def start_twin(site: str) -> StartedTwin:
    """Start the twin of a site: a slurmctld without nodes.

    Raises:
        HpcTrainError: no such profile, or Slurm does not start.
    """
    result = start(load_site(site).value)
    twin = result.twin
    accounting = bool(twin.place.dbd_port)
    return StartedTwin(twin.name, twin.place.folder, accounting, result.made, twin.assumptions)


def stop_twin(name: str) -> bool:
    """Stop the twin of a site, by name or file of its profile; return whether it was running."""
    return bool(stop(name.rpartition("/")[2].removesuffix(".yaml")))
