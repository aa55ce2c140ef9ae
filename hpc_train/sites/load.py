"""A profile's files -> SiteProfile, checked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec

from hpc_train.errors import SiteProfileError, nearest
from hpc_train.model.partition import Partition
from hpc_train.model.site import SiteProfile, SourcedSite
from hpc_train.model.value import Sourced, Value
from hpc_train.registry import BUILT_IN, find_batch_system, names, resolve
from hpc_train.sites.inheritance import read_profile
from hpc_train.sites.search import find_profile
from hpc_train.sites.validate_names import check_variables, check_words
from hpc_train.sites.validate_network import check_blocks, check_network, check_rendezvous
from hpc_train.sites.validate_partitions import check_queues
from hpc_train.typed_values import decode

_OF_HOSTS = frozenset(("hosts", "shared", "workdir"))


class Machine(Value, frozen=True, kw_only=True):
    """Cores in this process's affinity mask, and NVIDIA devices."""

    cpus: int
    gpus: int


def this_machine() -> Machine:
    """Count cores and GPUs; CUDA_VISIBLE_DEVICES restricts the GPUs as it does for torch."""
    devices = len(list(Path("/dev").glob("nvidia[0-9]*")))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        devices = min(devices, len([item for item in visible.split(",") if item.strip()]))
    return Machine(cpus=len(os.sched_getaffinity(0)), gpus=devices)


def load_site(named: str | Path, machine: Machine | None = None) -> SourcedSite:
    """Load a profile by its name or path, as a user writes them, or its file.

    A `local` site is completed with the facts of `machine` (default: this one).

    Raises:
        UnknownNameError: no profile of that name.
        SiteProfileError: the profile is invalid, with file:line; or it is a family.
    """
    path = named if isinstance(named, Path) else find_profile(named)
    whole = read_profile(path)
    if isinstance(whole.values, dict) and whole.values.get("family") is True:
        raise SiteProfileError(
            f"{whole.origins['family']}: {path.stem} is a family, which only profiles can extend",
            f"write a profile with `extends: {path.stem}`, or: hpctrain site list",
        )
    site = decode(whole.values, SiteProfile, whole.origins, SiteProfileError)
    _check_scheduler(site)
    _check_launchers(site)
    _check_name(site, path)
    check_variables(site)
    check_words(site)
    check_queues(site)
    check_rendezvous(site)
    check_network(site)
    check_blocks(site)
    batch = find_batch_system(site.value.scheduler)
    if batch.check:
        cast(Callable[[SourcedSite], None], resolve(batch.check))(site)
    if batch.host_list or not _OF_HOSTS.isdisjoint(site.origins):
        # Few profiles have such a list: each module costs a login node several file accesses.
        from hpc_train.sites.host_list import check_hosts, with_hosts

        check_hosts(site)
        return with_hosts(site)
    if batch.this_machine:
        return _on_this_machine(site, machine or this_machine())
    return site


def _check_scheduler(site: SourcedSite) -> None:
    """The scheduler of a profile is the name of an executor, ours or a plug-in's."""
    wanted = site.value.scheduler
    if wanted not in BUILT_IN["executors"] and wanted not in (known := names("executors")):
        raise SiteProfileError(
            f"{site.origin('scheduler')}: scheduler: must be one of {', '.join(known)}, not "
            f"{wanted!r}{nearest(wanted, known)}"
        )


def _check_launchers(site: SourcedSite) -> None:
    launchers = site.value.launchers
    place = site.origin("launchers.default")
    if launchers.default in launchers.forbidden:
        raise SiteProfileError(f"{place}: the default launcher {launchers.default!r} is forbidden")
    if launchers.default not in launchers.allowed:
        raise SiteProfileError(
            f"{place}: the default launcher {launchers.default!r} is not among the allowed: "
            f"{', '.join(launchers.allowed)}"
        )
    refused = find_batch_system(site.value.scheduler).refused
    for index, name in enumerate(launchers.allowed):
        if name in refused:
            left = [one for one in launchers.allowed if one not in refused]
            others = left or [one for one in names("launchers") if one not in refused]
            raise SiteProfileError(
                f"{site.near(f'launchers.allowed.{index}')}: launchers.allowed: {name}: "
                f"{refused[name]}",
                f"allowed: [{', '.join(others)}]",
            )
        if name in launchers.forbidden:
            raise SiteProfileError(
                f"{site.near(f'launchers.forbidden.{name}')}: {name} is allowed and forbidden"
            )


def _check_name(site: SourcedSite, path: Path) -> None:
    """A profile is found by its file name, so the name in it must be equal."""
    if site.value.name != path.stem:
        raise SiteProfileError(
            f"{site.origin('name')}: the name {site.value.name!r} is not that of the file, "
            f"{path.stem!r}"
        )


def _on_this_machine(site: SourcedSite, machine: Machine) -> SourcedSite:
    given = site.value.partitions[0] if site.value.partitions else Partition(name="machine")
    origins = dict(site.origins)
    facts = {"cpus_per_node": machine.cpus, "gpus_per_node": machine.gpus}
    missing = {key: value for key, value in facts.items() if getattr(given, key) is None}
    origins.update({f"partitions.0.{key}": "this machine" for key in missing})
    partition = msgspec.structs.replace(given, default=True, **missing)
    value = msgspec.structs.replace(site.value, partitions=(partition,))
    return Sourced(value=value, origins=origins)
