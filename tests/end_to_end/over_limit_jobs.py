"""Jobs that a profile must refuse: each of its numbers, and one more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.base.values import Duration, Memory, Sourced, Value
from hpc_train.jobs.job import JobSpec
from hpc_train.plans.sample_jobs import QueueSlot, known_launcher, qualities, queue_slots, sample
from hpc_train.sites.partition import ANY, Partition
from hpc_train.sites.profile import SiteProfile

_HOUR = 3600
_MOST_MEMORY = Memory.parse("1024T")
_LIMITS = {
    "nodes": ("nodes", "max_nodes", "max_gpus", "max_node_minutes"),
    "time": ("max_time", "max_node_minutes"),
    "gpus_per_node": ("gpus_per_node", "max_gpus", "cpus_per_node", "cpus_per_gpu"),
    "mem": ("mem_per_node",),
    "cpus_per_task": ("cpus_per_node", "cpus_per_gpu"),
    "least": ("min_nodes", "min_gpus", "min_time"),
}
Job = Sourced[JobSpec]


class OverLimitJob(Value, frozen=True, kw_only=True):
    """A job that asks for too much, and the profile without the limit, which takes it.

    `says` is what the refusal must name: a number, or a word.
    """

    what: str
    says: str
    job: Job
    lifted: SiteProfile


def jobs_beyond(profile: SiteProfile) -> Iterator[OverLimitJob]:
    """Yield jobs beyond the limits that the profile knows."""
    for slot in queue_slots(profile):
        yield from _beyond_queue(slot)
        for qos in qualities(profile, slot.partition):
            yield from _beyond_queue(msgspec.structs.replace(slot, qos=qos.name))
        yield from _beyond_node(slot)
        yield from _below(slot)
    yield from _beyond_site(profile)


def lift(profile: SiteProfile, what: str) -> SiteProfile:
    """Return the profile without the limits on something."""
    fields = _LIMITS[what]

    def freed(entry: Any) -> Any:
        known: dict[str, Any] = {name: None for name in fields if name in entry.__struct_fields__}
        if "bounds" in entry.__struct_fields__:
            known["bounds"] = tuple(freed(bound) for bound in entry.bounds)
        return msgspec.structs.replace(entry, **known)

    return msgspec.structs.replace(
        profile,
        partitions=tuple(freed(one) for one in profile.partitions),
        qos=tuple(freed(one) for one in profile.qos),
    )


def _beyond_queue(slot: QueueSlot) -> Iterator[OverLimitJob]:
    """Too many nodes or GPUs in all, too long, on the fewest and on the most nodes."""
    least, most = slot.least, slot.most("nodes", slot.least)
    gpus = slot.most("gpus", least)
    each = slot.partition.gpus_per_node or 0
    if most is not None:
        yield _job(slot, "nodes", str(most), nodes=most + 1, gpus_per_node=min(each, 1))
    if gpus is not None and each and (most is None or gpus // each < most):
        yield _job(slot, "nodes", str(gpus), nodes=gpus // each + 1, gpus_per_node=each)
    edges = (n for n in _edges(slot.partition) if least <= n <= (most or n))
    for nodes in dict.fromkeys((least, *edges, most or least)):
        longest = slot.most("time", nodes)
        if longest is not None:
            time = Duration(longest + _HOUR)
            yield _job(slot, "time", str(Duration(longest)), nodes=nodes, time=time)


def _edges(partition: Partition) -> Iterator[int]:
    """Yield the node counts at which other limits begin."""
    for bound in partition.bounds:
        for number in re.findall(r"\d+", bound.nodes or ""):
            yield int(number)


def _beyond_node(slot: QueueSlot) -> Iterator[OverLimitJob]:
    """Too many GPUs, cores or bytes of one node."""
    partition, profile = slot.partition, slot.site.value
    gpus, cores = partition.gpus_per_node, partition.cpus_per_node
    one: dict[str, Any] = {"tasks_per_node": 1, "cpus_per_task": 1}
    if gpus is not None and gpus < 64 and profile.gpu_request != "none":
        says = str(min(gpus, slot.most("gpus", slot.least) or gpus))
        yield _job(slot, "gpus_per_node", says, gpus_per_node=gpus + 1, **one)
    if partition.mem_per_node and profile.mem_request != "forbidden":
        says = str(partition.mem_per_node)
        yield _job(slot, "mem", says, mem=Memory(min(2 * partition.mem_per_node, _MOST_MEMORY)))
    if profile.cpu_request == "forbidden":
        return
    if cores is not None:
        many = {"tasks_per_node": 1, "cpus_per_task": cores + 1}
        yield _job(slot, "cpus_per_task", str(cores), **many)
    if gpus and partition.cpus_per_gpu and partition.cpu_rule != "share":
        share = partition.cpus_per_gpu
        wrong = share + 1 if partition.cpu_rule == "max" or share == 1 else share - 1
        many = {"gpus_per_node": 1, "tasks_per_node": 1, "cpus_per_task": wrong}
        yield _job(slot, "cpus_per_task", str(share), **many)


def _below(slot: QueueSlot) -> Iterator[OverLimitJob]:
    partition = slot.partition
    if (partition.min_nodes or 1) > 1:
        yield _job(slot, "least", str(partition.min_nodes), nodes=(partition.min_nodes or 1) - 1)
    if (partition.min_gpus or 1) > 1 and (partition.min_nodes or 1) == 1:
        few: dict[str, Any] = {"nodes": 1, "gpus_per_node": 1}
        yield _job(slot, "least", str(partition.min_gpus), **few)
    # sbatch counts whole minutes.
    if partition.min_time and partition.min_time >= 120:
        short = Duration(partition.min_time - 60)
        yield _job(slot, "least", str(partition.min_time), time=short)


def _beyond_site(profile: SiteProfile) -> Iterator[OverLimitJob]:
    """What the site wants to hear, and does not want to."""
    slot = next(queue_slots(profile))
    job = sample(slot, profile.launchers.default)
    for key in dict.fromkeys((*profile.required, *_payer(profile))):
        free = msgspec.structs.replace(profile.account, required=False)
        lifted = msgspec.structs.replace(profile, required=(), account=free)
        if key not in ("partition", "constraint", "mem"):
            yield _asked(job, lifted, f"no {key}", key, **{key: None})
    if profile.mem_request == "forbidden" or "mem" in profile.forbidden:
        lifted = msgspec.structs.replace(profile, mem_request="allowed", forbidden={})
        yield _asked(job, lifted, "mem", "mem", mem=Memory.parse("1G"))
    if profile.qos and all(qos.name != ANY for qos in profile.qos):
        lifted = msgspec.structs.replace(profile, qos=())
        yield _asked(job, lifted, "unknown qos", "no-such-qos", qos="no-such-qos")


def _payer(profile: SiteProfile) -> tuple[str, ...]:
    return ("account",) if profile.account.required else ()


def _job(slot: QueueSlot, what: str, says: str, **asked: Any) -> OverLimitJob:
    profile = slot.site.value
    found = map(known_launcher, profile.launchers.allowed)
    of_slurm = (one.name for one in found if one and one.ranks_are_tasks)
    launcher = next(of_slurm, profile.launchers.default)
    job = sample(slot, launcher, **asked)
    return OverLimitJob(what=what, says=says, job=job, lifted=lift(profile, what))


def _asked(job: Job, lifted: SiteProfile, what: str, says: str, **asked: Any) -> OverLimitJob:
    of_job = {key: value for key, value in asked.items() if key in JobSpec.__struct_fields__}
    of_size = {key: value for key, value in asked.items() if key not in of_job}
    resources = msgspec.structs.replace(job.value.resources, **of_size)
    spec = msgspec.structs.replace(job.value, resources=resources, **of_job)
    return OverLimitJob(
        what=what, says=says, job=Sourced(value=spec, origins={"": what}), lifted=lifted
    )
