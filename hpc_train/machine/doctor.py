"""This machine and its Slurm -> inventory and problems."""

from __future__ import annotations

import os
import shutil
from typing import Any

from hpc_train.base.errors import ProbeError
from hpc_train.base.finding import Finding, has_errors
from hpc_train.base.value import Value
from hpc_train.machine.hardware import Hardware
from hpc_train.machine.infer_settings import Guess, gpu_order, guess
from hpc_train.machine.problems_and_remedies import advise
from hpc_train.machine.read_hardware import this_hardware, this_topology
from hpc_train.pbs.live_pbs import LivePbs
from hpc_train.plans.node_topology import NodeTopology, nearest_nics
from hpc_train.reports.topology_text import topology_lines
from hpc_train.sagemaker.account_check import AccountCheck, check_account, uses_aws
from hpc_train.sites.detection import detect_site, this_host
from hpc_train.sites.load import load_site
from hpc_train.slurm.live_cluster import Cluster, read_cluster

SECTIONS = ("slurm", "launchers", "torch", "gpus", "network", "limits", "containers", "sagemaker")


class Examined(Value, frozen=True, kw_only=True):
    """The result; `slurm_problem` is the reason why an installed Slurm did not answer.

    `profiles` are the site profiles that match this host, `pbs` is the PBS of this machine.
    `aws` is the account of this shell, if it is set up for AWS or its site is one of SageMaker.
    """

    hardware: Hardware
    cluster: Cluster | None
    slurm_problem: str
    advice: tuple[Finding, ...]
    profiles: tuple[str, ...] = ()
    pbs: LivePbs | None = None
    aws: AccountCheck = AccountCheck()

    @property
    def scheduler(self) -> str:
        """Return the title of the section on the scheduler: `pbs`, else `slurm`."""
        of_pbs = self.pbs is not None or any(one.id == "pbs" for one in self.advice)
        return "pbs" if of_pbs and self.cluster is None else "slurm"

    @property
    def failed(self) -> bool:
        """Whether a problem prevents jobs from working."""
        return has_errors(self.advice)


def examine(reach: str | None = None) -> Examined:
    """Inspect this machine and its Slurm; with `reach`, try one connection to that host.

    Raises:
        ProbeError: there is no bash.
        SpecError: `reach` is not a host.
    """
    hardware = this_hardware(reach)
    cluster, slurm_problem = _cluster()
    advice = advise(hardware, cluster)
    if slurm_problem:
        message = f"Slurm's commands are installed, but do not answer: {slurm_problem}"
        hint = "set SLURM_CONF, or check whether the controller is up"
        advice += (Finding(id="slurm", severity="warning", message=message, advice=hint),)
    pbs, pbs_problem = _pbs()
    if pbs_problem:
        message = f"PBS's commands are installed, but do not answer: {pbs_problem}"
        hint = "check whether the server is up: qstat -B"
        advice += (Finding(id="pbs", severity="warning", message=message, advice=hint),)
    aws = _aws()
    advice += (aws.problem,) if aws.problem else ()
    profiles = tuple(match.name for match in detect_site(this_host()).matches)
    return Examined(
        hardware=hardware,
        cluster=cluster,
        slurm_problem=slurm_problem,
        advice=advice,
        profiles=profiles,
        pbs=pbs,
        aws=aws,
    )


def affinity(hardware: Hardware) -> tuple[tuple[int, ...], dict[int, tuple[str, ...]]]:
    """Return the GPUs in the order of their cores, and the nearest NICs of each GPU."""
    return gpu_order(hardware), {one.gpu: nearest_nics(one) for one in hardware.topology.gpus}


def network_of(hardware: Hardware) -> Guess:
    """Return a guess at the network of this machine, from names, link layers and drivers."""
    return guess(hardware)


def _cluster() -> tuple[Cluster | None, str]:
    if shutil.which("scontrol") is None:
        return None, ""
    try:
        return read_cluster(), ""
    except ProbeError as failure:
        return None, failure.message


def _aws() -> AccountCheck:
    named = os.environ.get("HPCTRAIN_SITE")
    site = load_site(named) if named else None
    if site is not None and site.value.sagemaker is None:
        site = None
    if site is None and not uses_aws():
        return AccountCheck()
    return check_account(site)


def _pbs() -> tuple[LivePbs | None, str]:
    from hpc_train.machine.draft_pbs import is_pbs
    from hpc_train.pbs.live_pbs import read_pbs

    if not is_pbs():
        return None, ""
    try:
        return read_pbs(), ""
    except ProbeError as failure:
        return None, failure.message


class ShownTopology(Value, frozen=True, kw_only=True):
    """The topology of this machine, its lines of text, and what could not be read."""

    topology: NodeTopology
    lines: tuple[str, ...]
    unread: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the JSON."""
        return {"schema": 1, "topology": self.topology, "unread": self.unread}


def show_topology() -> ShownTopology:
    """Read the topology of this machine.

    Raises:
        ProbeError: there is no bash.
    """
    topology, unread = this_topology()
    return ShownTopology(topology=topology, lines=tuple(topology_lines(topology)), unread=unread)
