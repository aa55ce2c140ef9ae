"""The hosts of a profile: what is refused, and what follows from them for jobs."""

from __future__ import annotations

from typing import Any

import msgspec

from hpc_train.base.errors import SiteProfileError
from hpc_train.base.value import Sourced
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.partition import Partition
from hpc_train.sites.profile import SiteProfile, SourcedSite

_MEETING = "first-host"
_EXAMPLE = "hosts: [{name: gpu1, address: 10.0.0.11}, {name: gpu2, address: 10.0.0.12}]"


def check_hosts(site: SourcedSite) -> None:
    """Refuse a list of hosts that is empty, names a host twice, or mixes kinds of machines.

    Raises:
        SiteProfileError: with file:line.
    """
    profile, wanted = site.value, find_batch_system(site.value.scheduler).host_list
    if wanted and not profile.hosts:
        place = site.near("hosts")
        raise SiteProfileError(
            f"{place}: hosts: the scheduler {profile.scheduler} needs a list of machines",
            f"{_EXAMPLE}, or: hpctrain site init --hosts gpu1,gpu2",
        )
    if not wanted:
        _check_unused(site)
        return
    _check_once(site, "name", {})
    _check_once(site, "address", {})
    _check_gpus(site)
    _check_sizes(site)
    _check_meeting(site)


def _check_unused(site: SourcedSite) -> None:
    for key in ("hosts", "shared", "workdir"):
        if key in site.origins:
            raise SiteProfileError(
                f"{site.near(key)}: {key}: the scheduler {site.value.scheduler} has its own hosts",
                "scheduler: hosts reaches the machines of a list by ssh",
            )


def _check_once(site: SourcedSite, key: str, seen: dict[str, int]) -> None:
    """A host that is listed twice would get the ranks of two; one lock would hold up both."""
    for index, host in enumerate(site.value.hosts):
        word = host.name if key == "name" else host.reached
        if word in seen:
            first = site.near(f"hosts.{seen[word]}.{key}")
            raise SiteProfileError(
                f"{site.near(f'hosts.{index}.{key}')}: hosts: {key} {word!r} is listed twice "
                f"({first})",
                "list each machine once",
            )
        seen[word] = index


def _check_gpus(site: SourcedSite) -> None:
    """A job has the same number of ranks and GPUs on each of its nodes."""
    known = [(index, host) for index, host in enumerate(site.value.hosts) if host.gpus is not None]
    for index, host in known[1:]:
        first = known[0][1]
        if host.gpus != first.gpus:
            raise SiteProfileError(
                f"{site.near(f'hosts.{index}.gpus')}: {host.name} has {host.gpus} GPUs and "
                f"{first.name} has {first.gpus}: a job has the same number on each host",
                "write one profile for each kind of machine, or state for all the smallest number",
            )
    stated = {host.gpus for _, host in known}
    for index, partition in enumerate(site.value.partitions):
        if stated and partition.gpus_per_node not in (None, *stated):
            raise SiteProfileError(
                f"{site.near(f'partitions.{index}.gpus_per_node')}: gpus_per_node: "
                f"{partition.gpus_per_node}, but {known[0][1].name} has {known[0][1].gpus} "
                f"({site.near(f'hosts.{known[0][0]}.gpus')})"
            )


def _check_sizes(site: SourcedSite) -> None:
    there = len(site.value.hosts)
    for index, partition in enumerate(site.value.partitions):
        if partition.max_nodes is not None and partition.max_nodes > there:
            raise SiteProfileError(
                f"{site.near(f'partitions.{index}.max_nodes')}: max_nodes: {partition.max_nodes}, "
                f"but the list has {there} host{'s' if there > 1 else ''} ({site.near('hosts')})"
            )


def _check_meeting(site: SourcedSite) -> None:
    """All hosts must use one address, which only the profile knows for all of them."""
    meeting = site.value.rendezvous
    if meeting.host != _MEETING or meeting.suffix:
        raise SiteProfileError(
            f"{site.near('rendezvous.host')}: rendezvous.host: the ranks of a list of hosts meet "
            f"at the address of its first host, not by {meeting.host}",
            "state the address of each host: hosts: [{name: gpu1, address: 10.0.0.11}]",
        )


def with_hosts(site: SourcedSite) -> SourcedSite:
    """Return a profile whose partitions have the number of hosts and their GPUs.

    All GPUs of a host belong to the job that has its lock, so no option requests them.
    """
    profile, origins = site.value, dict(site.origins)
    partitions = []
    for index, partition in enumerate(profile.partitions or (Partition(name="all", default=True),)):
        missing = _missing(partition, profile)
        origins.update({f"partitions.{index}.{key}": site.near("hosts") for key in missing})
        partitions.append(msgspec.structs.replace(partition, **missing))
    value = msgspec.structs.replace(profile, partitions=tuple(partitions), gpu_request="none")
    return Sourced(value=value, origins=origins)


def _missing(partition: Partition, profile: SiteProfile) -> dict[str, Any]:
    gpus = next((host.gpus for host in profile.hosts if host.gpus is not None), None)
    facts = {"max_nodes": len(profile.hosts), "gpus_per_node": gpus}
    return {
        key: value
        for key, value in facts.items()
        if value is not None and getattr(partition, key) is None
    }
