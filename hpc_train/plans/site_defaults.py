"""What a site does by itself, or does otherwise: nothing is written for it, `explain` shows it."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.model.partition import Preemption
from hpc_train.model.plan import Setting
from hpc_train.plans.context import Job, Site, partition_of


def custom_settings(job: Job, site: Site) -> dict[str, Setting]:
    """Return the site's customs that may surprise a job."""
    return {
        **_default_time(job, site),
        **_requeue(site),
        **_steps(site),
        **_cores(site),
        **_preemption(job, site),
    }


def custom_warnings(job: Job, site: Site) -> Iterator[str]:
    """Warn of a time that nobody asked for, and of cores whose number nobody knows."""
    found, name = partition_of(job, site), site.value.name
    for limit in _default_time(job, site).values():
        where = f"{name} {found[1].name}" if found else name
        yield (
            f"no time limit: {where} ends the job after {limit.value} ({limit.origin}); "
            "give it a time"
        )
    gpus = found[1].gpus_per_node if found else None
    if gpus and job.value.resources.gpus_per_node is None and site.value.gpu_request != "none":
        if site.value.scheduler == "slurm":
            yield (
                f"each node of {name} {found[1].name if found else ''} has {gpus} GPUs, and the "
                "job asks for none; name resources.gpus_per_node (0, if that is meant)"
            )
    known = found and (found[1].cpus_per_gpu or found[1].cpus_per_node)
    if known or job.value.resources.cpus_per_task or site.value.scheduler != "slurm":
        return
    if site.value.cpu_request == "forbidden":
        yield (
            f"{site.near('cpu_request')}: {name} gives cores by itself, and its profile does not "
            "say how many: each rank takes 1; name resources.cpus_per_task"
        )
    elif job.value.resources.gpus_per_node:
        yield (
            f"{name} does not say how many cores its nodes have: each rank gets 1, and a GPU "
            "waits for it; name resources.cpus_per_task"
        )


def _default_time(job: Job, site: Site) -> dict[str, Setting]:
    found = partition_of(job, site)
    limit = found[1].default_time if found else None
    if found is None or limit is None or job.value.resources.time is not None:
        return {}
    origin = site.origin(f"partitions.{found[0]}.default_time")
    return {"default_time": Setting(value=limit, origin=origin, why="the job asks for no time")}


def _requeue(site: Site) -> dict[str, Setting]:
    lifecycle = site.value.lifecycle
    if lifecycle is None or lifecycle.requeue is None:
        return {}
    does = "starts the job again" if lifecycle.requeue else "does not start the job again"
    why = f"Slurm {does} when a node is lost, unless sbatch is told otherwise"
    why = f"{why}; {lifecycle.note}" if lifecycle.note else why
    return {
        "requeue": Setting(
            value=lifecycle.requeue, origin=site.origin("lifecycle.requeue"), why=why
        )
    }


def _steps(site: Site) -> dict[str, Setting]:
    """What psid does differently is where Slurm's words are only inherited."""
    if site.value.step_manager == "slurmd":
        return {}
    why = "not slurmd: each srun is told its cores, tasks and nodes, and inherits none of them"
    origin = site.origin("step_manager")
    return {"step_manager": Setting(value=site.value.step_manager, origin=origin, why=why)}


def _cores(site: Site) -> dict[str, Setting]:
    if site.value.cpu_request == "allowed":
        return {}
    why = "cores come with the nodes or GPUs; only the job's steps count them"
    return {"cpu_request": Setting(value="forbidden", origin=site.origin("cpu_request"), why=why)}


def _preemption(job: Job, site: Site) -> dict[str, Setting]:
    found = partition_of(job, site)
    rules = found[1].preemption if found else None
    if found is None or rules is None:
        return {}
    origin = site.near(f"partitions.{found[0]}.preemption")
    return {"preemption": Setting(value="possible", origin=origin, why=_ended(rules))}


def _ended(rules: Preemption) -> str:
    words = ["the job may be ended for another's sake"]
    words += [f"not in its first {rules.safe}"] if rules.safe else []
    words += [f"{rules.grace} after the first signal"] if rules.grace else []
    return "; ".join([*words, *([] if rules.warning else ["without any signal before"])])
