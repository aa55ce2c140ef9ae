"""Sample jobs of a profile: each launcher on 1, 2 and the maximum of nodes, and limits."""

from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.values import Duration, Memory, Sourced, Value
from hpc_train.jobs.job import JobSpec, Resources, SourcedJob
from hpc_train.plans.launchers.base import Launcher, find_launcher
from hpc_train.plans.queue_limits import JobQueue, SizeName, limits_on, queue_named
from hpc_train.sites.partition import ANY, Partition, Qos
from hpc_train.sites.profile import SiteProfile, SourcedSite, sample_account

_SHORT = Duration.parse("5m")
_MEMORY = Memory.parse("1G")
_CORES = 1
# Sample value of a required key that the user chooses.
_WORD = "any"


class QueueSlot(Value, frozen=True, kw_only=True):
    """The queue of a sample job: a partition, and a quality of service if required."""

    site: SourcedSite
    partition: Partition
    qos: str | None

    @property
    def named(self) -> str | None:
        """Return the partition of the job; `gpu` if the profile lists none."""
        if self.partition.name != ANY:
            return self.partition.name
        return "gpu" if self.site.value.partitions else None

    @property
    def queue(self) -> JobQueue:
        """Return the limits of jobs in this queue."""
        return queue_named(self.site.value, self.named, self.qos)

    @property
    def least(self) -> int:
        """Return the minimum number of nodes of a job, with all their GPUs."""
        partition = self.partition
        gpus = partition.gpus_per_node or 1
        return max(partition.min_nodes or 1, -(-(partition.min_gpus or 1) // gpus))

    def most(self, size: SizeName, nodes: int) -> int | None:
        """Return the largest number of `nodes`, `gpus` or seconds of `time`; None if unknown."""
        return min((limit.value for limit in limits_on(size, self.queue, nodes)), default=None)


def sample_jobs(profile: SiteProfile) -> Iterator[SourcedJob]:
    """Yield jobs within the profile's limits, on each partition."""
    for slot in queue_slots(profile):
        yield from jobs_at(slot)


def jobs_at(slot: QueueSlot) -> Iterator[SourcedJob]:
    """Yield jobs of one partition: launcher x {1, 2, max} nodes; none if none fits.

    For the default launcher also the longest time, each quality of service, a part of a shared
    node.
    """
    launchers = slot.site.value.launchers
    for launcher in launchers.allowed:
        for nodes in _counts(slot, launcher):
            yield sample(slot, launcher, nodes=nodes)
    if _counts(slot, launchers.default):
        yield from _edges(slot)


def nameless_job(profile: SiteProfile) -> SourcedJob | None:
    """Return a job without a partition; None if it must name one."""
    if not profile.partitions or must_name(profile):
        return None
    found = sorted(queue_slots(profile), key=lambda slot: not slot.partition.default)
    job = next(jobs_at(found[0]), None)
    if job is None:
        return None
    place = f"no partition, {job.origin('')}"
    return Sourced(value=msgspec.structs.replace(job.value, partition=None), origins={"": place})


def must_name(profile: SiteProfile) -> bool:
    """Whether a job that names no partition is refused."""
    return profile.partition_choice == "job" or "partition" in profile.required


def queue_slots(profile: SiteProfile) -> Iterator[QueueSlot]:
    """Yield each partition, with a quality of service if the site requires one."""
    site = Sourced(value=profile, origins={})
    for partition in profile.partitions or (Partition(name=ANY),):
        qos = None
        if "qos" in profile.required and not (partition.select and partition.select.qos):
            # A profile may accept any name.
            any_name = _WORD if all(qos.name == ANY for qos in profile.qos) else None
            qos = next((one.name for one in qualities(profile, partition)), any_name)
        yield QueueSlot(site=site, partition=partition, qos=qos)


def qualities(profile: SiteProfile, partition: Partition) -> Iterator[Qos]:
    """Yield the qualities of service that jobs of a partition may name."""
    for qos in profile.qos:
        if qos.name != ANY and (not qos.partitions or partition.name in qos.partitions):
            yield qos


def sample(slot: QueueSlot, launcher: str, **asked: Any) -> SourcedJob:
    """Return a job that requests all GPUs of the nodes by default."""
    profile = slot.site.value
    nodes = asked.pop("nodes", slot.least)
    gpus = slot.partition.gpus_per_node or 0
    total = slot.most("gpus", nodes)
    time = max(_SHORT, slot.partition.min_time or _SHORT)
    found, partition, required = known_launcher(launcher), slot.partition, profile.required
    memory = "mem" in required or profile.mem_request == "required"
    # A job with GPUs must state its cores where the profile does not.
    cores = partition.cpus_per_gpu or partition.cpus_per_node or partition.exclusive
    chosen = partition.select and partition.select.constraint
    resources = Resources(
        nodes=nodes,
        gpus_per_node=gpus if total is None else min(gpus, max(min(1, total), total // nodes)),
        time=Duration(min(time, slot.most("time", nodes) or time)),
        mem=_MEMORY if memory and partition.mem_per_gpu is None else None,
        cpus_per_task=_CORES if not cores and profile.cpu_request == "allowed" else None,
        # One process, whatever it has of GPUs.
        tasks_per_node=1 if found and found.one_rank else None,
    )
    suffixes = (one.select and one.select.account_suffix for one in profile.partitions)
    account = profile.account
    stated = account.required or account.example or any(suffixes) or "account" in required
    job = JobSpec(
        name=f"sample-{launcher}-{nodes}",
        command=("python", "train.py"),
        launcher=launcher,
        partition=slot.named,
        account=sample_account(account) if stated else None,
        qos=slot.qos,
        constraint=_WORD if "constraint" in required and not chosen else None,
        resources=msgspec.structs.replace(resources, **asked),
    )
    words = [partition.name, launcher, f"{nodes} node{'s' if nodes > 1 else ''}"]
    words += [f"qos {slot.qos}"] if slot.qos else []
    words += [f"{key} = {value}" for key, value in asked.items()]
    return Sourced(value=job, origins={"": ", ".join(words)})


def is_for_one_node(launcher: str) -> bool:
    """Say whether a launcher is made for one node; one that is not there fails in its own job."""
    found = known_launcher(launcher)
    return found is not None and found.one_node


def known_launcher(name: str) -> Launcher | None:
    """Return the launcher of a name; None where there is none, or where it cannot be loaded."""
    try:
        return find_launcher(name)
    except HpcTrainError:
        return None


def _counts(slot: QueueSlot, launcher: str) -> tuple[int, ...]:
    least = slot.least
    most = slot.most("nodes", least) or max(2, least)
    total = slot.most("gpus", least)
    if total:
        # All GPUs of the nodes, or some of each of the fewest.
        whole = total // (slot.partition.gpus_per_node or 1)
        most = min(most, max(whole, least if least <= total else 0))
    wanted = dict.fromkeys(count for count in (1, 2, least, most) if least <= count <= most)
    return tuple(n for n in wanted if n == 1) if is_for_one_node(launcher) else tuple(wanted)


def _edges(slot: QueueSlot) -> Iterator[SourcedJob]:
    profile, partition = slot.site.value, slot.partition
    launcher, least = profile.launchers.default, slot.least
    longest = slot.most("time", least)
    if longest is not None:
        yield sample(slot, launcher, time=Duration(longest))
    if partition.shared and partition.gpus_per_node and (partition.min_gpus or 1) == 1:
        yield sample(slot, launcher, gpus_per_node=1)
    for qos in qualities(profile, partition):
        yield sample(msgspec.structs.replace(slot, qos=qos.name), launcher)
