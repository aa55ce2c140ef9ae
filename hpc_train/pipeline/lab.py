"""The lab, the twins of sites, and hosts that ssh reaches: on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hpc_train.errors import LabError
from hpc_train.lab.daemons import is_alive
from hpc_train.lab.down import down
from hpc_train.lab.lab_status import LabState, state_of
from hpc_train.lab.pbs import small_pbs
from hpc_train.lab.pbs.placement import NodeSize
from hpc_train.lab.pbs.small_pbs import SmallPbs
from hpc_train.lab.sagemaker.start_and_stop import RunningService, start_service, stop_service
from hpc_train.lab.settings import Settings, memory
from hpc_train.lab.slurm_programs import chosen_prefix
from hpc_train.lab.ssh_hosts import start_and_stop as ssh_lab
from hpc_train.lab.state_file import Lab, read
from hpc_train.lab.twins.start_and_stop import start, stop
from hpc_train.lab.twins.state_file import read_all
from hpc_train.lab.up import up
from hpc_train.sites.load import load_site


class StartedLab(NamedTuple):
    """A running lab; `is_new` is False if it was running before."""

    lab: Lab
    is_new: bool


class SshHosts(NamedTuple):
    """The running hosts that ssh reaches; `is_new` is False if they were running before."""

    names: tuple[str, ...]
    folder: str
    profile: str
    is_new: bool
    running: bool


class StartedPbs(NamedTuple):
    """A running small PBS; `is_new` is False if it was running before."""

    pbs: SmallPbs
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
        HpcTrainError: invalid options, another lab is running, or Slurm does not start.
    """
    mem = memory(options["mem"])
    settings = Settings(**{**options, "mem": mem, "slurm_prefix": chosen_prefix()})
    result = up(settings, say)
    return StartedLab(result.lab, result.made)


def start_pbs(options: Mapping[str, Any]) -> StartedPbs:
    """Start the small PBS of the user, which needs no root.

    Raises:
        HpcTrainError: invalid options, one with other nodes is running, or it does not start.
    """
    mem = memory(options["mem"]) << 20
    size = NodeSize(nodes=options["nodes"], ncpus=options["cpus"], mem=mem)
    return StartedPbs(*small_pbs.up(pbs_folder(options["folder"]), size))


def pbs_folder(folder: str | None) -> Path:
    """Return the folder of a small PBS: the one that is named, or that of the user."""
    return Path(folder).absolute() if folder else small_pbs.default_folder()


def stop_pbs(folder: str | None) -> str:
    """Stop the small PBS in a folder; return its folder, or an empty string without one.

    Raises:
        LabError: there is none in `folder`, or it does not end.
    """
    place = pbs_folder(folder)
    stopped = small_pbs.down(place)
    if folder is not None and not stopped:
        raise LabError(f"no small PBS in {folder}", "hpctrain lab status")
    return str(place) if stopped else ""


def running_pbs() -> SmallPbs | None:
    """Return the small PBS of the user, if it is running."""
    found = small_pbs.read(small_pbs.default_folder())
    return found if found and is_alive(found.server) else None


def start_sagemaker() -> RunningService:
    """Start a SageMaker on this machine, unless it is running.

    Raises:
        LabError: it cannot be started.
    """
    return start_service()


def stop_sagemaker() -> str:
    """Stop the SageMaker; return its folder, or an empty string without one.

    Raises:
        LabError: something cannot be removed.
    """
    return stop_service()


def stop_lab(folder: str | None) -> str:
    """Stop the lab in a folder, or any lab; return its folder, or an empty string without a lab.

    Raises:
        LabError: there is no lab in `folder`, or it cannot be removed.
    """
    stopped = str(down(folder) or "")
    if folder is not None and not stopped:
        raise LabError(f"no lab in {folder}", "hpctrain lab status")
    return stopped


def start_ssh_hosts(count: int, folder: str) -> SshHosts:
    """Start hosts that ssh reaches, and wait until they answer.

    Raises:
        HpcTrainError: others are running, or they cannot be started.
    """
    result = ssh_lab.start(count, folder)
    return _ssh_hosts(result.lab, is_new=result.made)


def stop_ssh_hosts() -> str:
    """Stop the hosts that ssh reaches; return their folder, or an empty string without any.

    Raises:
        LabError: they cannot be removed.
    """
    return ssh_lab.stop()


def ssh_hosts() -> SshHosts | None:
    """Return the hosts that ssh reaches."""
    found = ssh_lab.read()
    return _ssh_hosts(found, is_new=False) if found else None


def _ssh_hosts(lab: ssh_lab.SshLab, *, is_new: bool) -> SshHosts:
    names = tuple(host.name for host in lab.hosts)
    return SshHosts(names, lab.folder, lab.profile, is_new, ssh_lab.is_running(lab))


def lab_state() -> tuple[Lab, LabState] | None:
    """Return the settings and the state of the running lab."""
    found = read()
    return (found, state_of(found)) if found else None


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
