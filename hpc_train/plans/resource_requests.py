"""What a job asks of the scheduler beside its sizes, each with its origin."""

from __future__ import annotations

from hpc_train.model.plan import Setting, Topology
from hpc_train.plans.context import Job, Site, default, from_job, from_site, partition_of
from hpc_train.plans.gpu_request import type_settings
from hpc_train.plans.limits import check_required
from hpc_train.plans.memory import memory_settings
from hpc_train.plans.queue_options import queue_settings
from hpc_train.plans.storage import storage_settings


def request_settings(
    job: Job, site: Site, topology: Topology, partition: Setting | None
) -> dict[str, Setting]:
    """Return the requests; `partition` is the one that was chosen.

    Raises:
        PlanError: something is missing that the site wants, or there that it forbids.
    """
    given = {
        "time": from_job(job, "resources.time"),
        **memory_settings(job, site, topology),
        "exclusive": from_job(job, "resources.exclusive") or _whole(job, site),
        **type_settings(job, site, topology),
        **queue_settings(job, site, partition),
        **storage_settings(job, site),
        "comment": from_job(job, "comment"),
        "workdir": from_job(job, "workdir") or default(None, "where you submit"),
    }
    settings = {key: setting for key, setting in given.items() if setting is not None}
    check_required(job, site, settings)
    return settings


def _whole(job: Job, site: Site) -> Setting | None:
    found = partition_of(job, site)
    if found is None or not found[1].exclusive:
        return None
    return from_site(
        site, f"partitions.{found[0]}.exclusive", True, "the site's jobs take whole nodes"
    )
