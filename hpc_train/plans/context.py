"""Precedence, in one place: option > job > site > default."""

from __future__ import annotations

from typing import Any

import msgspec

from hpc_train.model.job import JobSpec
from hpc_train.model.partition import ANY, Partition
from hpc_train.model.plan import Setting
from hpc_train.model.site import SiteProfile
from hpc_train.model.value import Sourced

Job = Sourced[JobSpec]
Site = Sourced[SiteProfile]


def from_job(job: Job, key: str, why: str = "") -> Setting | None:
    """Return what the job (or an option over it) says of a dotted key, if anything."""
    value: Any = job.value
    for part in key.split("."):
        value = getattr(value, part)
    return None if value is None else Setting(value=value, origin=job.origin(key), why=why)


def from_site(site: Site, key: str, value: Any, why: str = "") -> Setting | None:
    """Return what the site says, if anything; `key` is where the profile says it."""
    return None if value is None else Setting(value=value, origin=site.origin(key), why=why)


def rule(value: Any, why: str) -> Setting:
    """Return a value that follows from others."""
    return Setting(value=value, origin="rule", why=why)


def default(value: Any, why: str) -> Setting:
    """Return a value that nobody gave."""
    return Setting(value=value, origin="default", why=why)


def partition_of(job: Job, site: Site) -> tuple[int, Partition] | None:
    """Return the profile's entry for the job's partition, or for the site's default one."""
    return partition_named(job.value.partition, site)


def partition_named(wanted: str | None, site: Site) -> tuple[int, Partition] | None:
    """Return the profile's entry for a partition, or for the site's default one.

    One that is listed as `*` stands for any name, and for the cluster's own default.
    """
    rest = None
    for index, partition in enumerate(site.value.partitions):
        if partition.name == wanted or (wanted is None and partition.default):
            return index, partition
        if partition.name == ANY:
            rest = index, partition
    return rest if wanted is not None or site.value.partition_choice == "default" else None


def on_partition(job: Job, name: str, origin: str) -> Job:
    """Return the job as if it had named a partition."""
    return msgspec.structs.replace(
        job,
        value=msgspec.structs.replace(job.value, partition=name),
        origins={**job.origins, "partition": origin},
    )


def with_qos(job: Job, name: str) -> Job:
    """Return the job as if it had named a quality of service."""
    return msgspec.structs.replace(job, value=msgspec.structs.replace(job.value, qos=name))


def asked_at(job: Job, key: str) -> str:
    """Return the beginning of a message on what a job says, or should say."""
    place = job.near(key)
    return f"{place}: " if place else ""
