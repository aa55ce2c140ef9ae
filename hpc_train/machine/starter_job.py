"""A job file for a site that renders as it stands; a comment marks each value of the user."""

from collections.abc import Iterator

import msgspec

from hpc_train.base.data_folders import schema_comment
from hpc_train.base.errors import HpcTrainError, PlanError
from hpc_train.base.values import Duration, Memory, Sourced
from hpc_train.jobs.job import SourcedJob
from hpc_train.machine.draft_profile import block, known, line, remark
from hpc_train.plans.build import make_plan
from hpc_train.plans.sample_jobs import QueueSlot, is_for_one_node, queue_slots, sample
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.partition import ANY
from hpc_train.sites.profile import SiteProfile, SourcedSite

_NODES = 2
_TIME = Duration.parse("1h")
# For a profile that does not state them.
_GPUS, _CORES, _MEMORY = 4, 8, Memory.parse("100G")
_UNKNOWN = "placeholder: this profile does not state it"


def starter_job(name: str) -> str:
    """Return the text of a job file for a site: two nodes with their GPUs, for one hour.

    Raises:
        HpcTrainError: there is no such profile, or none of its partitions takes such a job.
    """
    site = load_site(name)
    job = _first_that_fits(site)
    head = f"A job for {site.value.name}: {site.value.description}"
    rows = [
        schema_comment("job"),
        remark(" ".join(head.split())),
        remark(f"hpctrain render job.yaml --site {name}"),
        *_keys(job, site),
        *block("resources", _resources(job, site.value)),
    ]
    return "\n".join(rows) + "\n"


def _first_that_fits(site: SourcedSite) -> SourcedJob:
    failure: HpcTrainError | None = None
    for job in _jobs(site.value):
        refusal = _refusal(job, site)
        if refusal is None:
            return job
        failure = failure or refusal
    raise failure or PlanError(f"{site.value.name} has no partition for a job")


def _jobs(profile: SiteProfile) -> Iterator[SourcedJob]:
    """Yield a job for each partition, first on two nodes, then on the fewest.

    The default partition precedes the others, and those that give whole nodes precede the rest.
    """
    launcher = profile.launchers.default
    slots = list(queue_slots(profile))

    def rank(pair: tuple[QueueSlot, SourcedJob]) -> tuple[bool, bool]:
        partition, asked = pair[0].partition, pair[1].value.resources.gpus_per_node
        return not partition.default, (asked or 0) < (partition.gpus_per_node or 0)

    for nodes in (1,) if is_for_one_node(launcher) else (_NODES, 1):
        jobs = [(slot, sample(slot, launcher, nodes=max(nodes, slot.least))) for slot in slots]
        for slot, job in sorted(jobs, key=rank):
            yield _for_an_hour(slot, job, profile)


def _for_an_hour(slot: QueueSlot, job: SourcedJob, profile: SiteProfile) -> SourcedJob:
    resources = job.value.resources
    most = slot.most("time", resources.nodes) or _TIME
    unknown = not profile.partitions and find_batch_system(profile.scheduler).prefix
    gpus = _GPUS if unknown else resources.gpus_per_node
    sized = msgspec.structs.replace(
        resources,
        time=Duration(min(max(_TIME, slot.partition.min_time or _TIME), most)),
        gpus_per_node=gpus,
        cpus_per_task=_CORES if resources.cpus_per_task and gpus else None,
        mem=_memory(slot, profile, resources.mem),
    )
    spec = msgspec.structs.replace(job.value, name="example", resources=sized)
    return Sourced(value=spec, origins=job.origins)


def _memory(slot: QueueSlot, profile: SiteProfile, required: Memory | None) -> Memory | None:
    """Return a request if the site requires one, or gives only the default of the cores."""
    by_cores = profile.default_mem_per_cpu is not None and profile.mem_request == "allowed"
    if required is None and not by_cores:
        return None
    return slot.partition.mem_per_node or required or _MEMORY


def _keys(job: SourcedJob, site: SourcedSite) -> Iterator[str]:
    spec, profile = job.value, site.value
    launcher = spec.launcher or profile.launchers.default
    yield line("name", spec.name)
    yield line("command", spec.command, "your program")
    several = spec.resources.nodes > 1
    others = (
        name
        for name in profile.launchers.allowed
        if name != launcher and not (several and is_for_one_node(name))
    )
    yield line("launcher", launcher, _or(tuple(others)))
    if spec.partition is not None:
        yield line("partition", spec.partition, _partitions(profile, spec.partition))
    if profile.sagemaker is not None and profile.sagemaker.image is None:
        image = {"image": "ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG"}
        yield f"container: {msgspec.json.encode(image).decode()}  # placeholder: your image"
    if spec.account is not None:
        command = profile.account.command
        yours = f"; printed by: {command}" if command else ""
        yield line("account", spec.account, f"placeholder: your own account{yours}")
    if spec.qos is not None:
        names = (one.name for one in profile.qos if one.name not in (spec.qos, ANY))
        yield line("qos", spec.qos, f"placeholder: your own; {_or(tuple(names))}")
    if spec.constraint is not None:
        yield line("constraint", spec.constraint, "placeholder: a feature of the nodes")


def _refusal(job: SourcedJob, site: SourcedSite) -> HpcTrainError | None:
    try:
        make_plan(job, site)
    except HpcTrainError as refusal:
        return refusal
    return None


def _partitions(profile: SiteProfile, chosen: str) -> str:
    names = [one.name for one in profile.partitions if one.name != ANY]
    if chosen not in names:
        return "placeholder: your cluster's own name for one (see sinfo)"
    return _or(tuple(name for name in names if name != chosen))


def _or(names: tuple[str, ...]) -> str:
    return f"or {', '.join(names)}" if names else ""


def _resources(job: SourcedJob, profile: SiteProfile) -> Iterator[str]:
    asked = job.value.resources
    yield line("nodes", asked.nodes)
    if asked.gpus_per_node and profile.gpu_request != "none":
        note = "" if profile.partitions else _UNKNOWN
        yield line("gpus_per_node", asked.gpus_per_node, note)
    if asked.cpus_per_task is not None:
        yield line("cpus_per_task", asked.cpus_per_task, _UNKNOWN)
    if asked.mem is not None:
        stated = asked.mem in [one.mem_per_node for one in profile.partitions]
        note = "what a node has" if stated else _UNKNOWN
        yield line("mem", asked.mem, note)
    yield from known(time=asked.time)
