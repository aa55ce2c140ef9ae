"""Which partition a job gets: the one that it names, the site's, or the first that it fits."""

from __future__ import annotations

from typing import NamedTuple

from hpc_train.errors import PlanError, UnknownNameError
from hpc_train.model.partition import ANY
from hpc_train.model.plan import Setting
from hpc_train.plans.context import Job, Site, asked_at, from_job, on_partition, partition_of
from hpc_train.plans.misfits import misfits


class Choice(NamedTuple):
    """A job that names its partition, and who named it; None is the cluster's own default."""

    job: Job
    partition: Setting | None


def choose_partition(job: Job, site: Site) -> Choice:
    """Return the job on its partition.

    Raises:
        UnknownNameError: the site lists partitions and the job's is not among them.
        PlanError: the job must name one and does not, or fits none.
    """
    if job.value.partition is not None:
        _check_name(job, site, job.value.partition)
        return Choice(job, from_job(job, "partition"))
    found = partition_of(job, site)
    if site.value.partition_choice == "fitting":
        return _fitting(job, site)
    if site.value.partition_choice == "job":
        raise _question(job, site)
    if found is None or found[1].name == ANY:
        return Choice(job, None)
    return _chosen(job, site, found[0], "the site's default")


def fitting(job: Job, site: Site) -> list[int]:
    """Return which of the partitions that have a name would take the job."""
    return [index for index, other in _others(job, site) if not any(misfits(other, site))]


def _others(job: Job, site: Site) -> list[tuple[int, Job]]:
    return [
        (index, on_partition(job, partition.name, site.near(f"partitions.{index}.name")))
        for index, partition in enumerate(site.value.partitions)
        if partition.name != ANY
    ]


def _chosen(job: Job, site: Site, index: int, why: str) -> Choice:
    name = site.value.partitions[index].name
    origin = site.origin(f"partitions.{index}.name")
    setting = Setting(value=name, origin=origin, why=why)
    return Choice(on_partition(job, name, origin), setting)


def _fitting(job: Job, site: Site) -> Choice:
    found = fitting(job, site)
    if found:
        return _chosen(job, site, found[0], "the first of the site's that the job fits")
    reasons = []
    for _, other in _others(job, site):
        first = next(iter(misfits(other, site)))
        where = f" ({first.place})" if first.place else ""
        reasons.append(
            f"{other.value.partition}: {first.asked}, but {first.who} {first.limit}{where}"
        )
    raise PlanError(
        f"{asked_at(job, 'resources')}no partition of {site.value.name} takes this job: "
        + "; ".join(reasons),
        _advice(reasons),
    )


def _advice(reasons: list[str]) -> str:
    if all("GPUs of all nodes = 0" in reason or "wants at least" in reason for reason in reasons):
        return "ask for more: --gpus-per-node N, --nodes N"
    if any("GPUs of all nodes = 0" in reason for reason in reasons):
        return "name resources.gpus_per_node (--gpus-per-node N), or ask for less"
    return "ask for less, or name a partition"


def _question(job: Job, site: Site) -> PlanError:
    names = [one.name for one in site.value.partitions if one.name != ANY]
    others = len(names) < len(site.value.partitions) or not names
    own = "your cluster's own name for one (see sinfo)"
    allowed = ", ".join([*names, *([f"or {own}" if names else own] if others else [])])
    return PlanError(
        f"{asked_at(job, 'partition')}{site.value.name} has no default partition; "
        f"allowed: {allowed}",
        "add `partition: NAME` to the job, or --partition NAME",
    )


def _check_name(job: Job, site: Site, name: str) -> None:
    names = [one.name for one in site.value.partitions]
    if names and name not in names and ANY not in names:
        place = job.origin("partition")
        raise UnknownNameError(f"partition of {site.value.name}", name, names, place)
