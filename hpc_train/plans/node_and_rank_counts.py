"""The numbers of nodes, ranks, GPUs and cores, and the other requests: time, memory, queue."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.base.errors import PlanError
from hpc_train.base.regex import whole_match
from hpc_train.base.values import Memory
from hpc_train.jobs.job import Elastic, SourcedJob, Topology
from hpc_train.plans.context import (
    Context,
    asked_at,
    default,
    from_job,
    from_site,
    known,
    other_launchers,
    rule,
    show,
    takes_whole_nodes,
)
from hpc_train.plans.launchers.base import Launcher
from hpc_train.plans.plan import Setting
from hpc_train.sites.partition import ANY, Partition, Select
from hpc_train.sites.profile import SourcedSite


def resolve_topology(context: Context) -> tuple[Topology, dict[str, Setting]]:
    """Resolve the counts of a job.

    Ranks default to one per GPU, else one; on the local site each rank gets a GPU if enough are
    available. Cores default to the share of the rank's GPUs, else to an equal share of the node. If
    the site does not state them, a rank gets its share of what Slurm gives with whole nodes, which
    only the job knows, else one. They are always set, because torchrun gives each rank one thread
    if OMP_NUM_THREADS is not set.
    """
    settings = {"nodes": from_job(context.job, "resources.nodes") or default(1, "one node")}
    settings["gpus_per_node"] = _gpus(context)
    gpus = settings["gpus_per_node"].value
    settings["tasks_per_node"] = from_job(context.job, "resources.tasks_per_node") or (
        rule(gpus, "one rank per GPU") if gpus else default(1, "no GPUs: one rank")
    )
    settings["cpus_per_task"] = _cpus(context, settings["tasks_per_node"].value, gpus)
    counts = {key: setting.value for key, setting in settings.items()}
    return Topology(**counts), settings


def gpu_warnings(topology: Topology, launcher: Launcher, gpu_request: str = "") -> tuple[str, ...]:
    """Return warnings: GPUs that a rank does not see, or shares, or does not use; several for one.

    Slurm binds the GPUs of `--gpus-per-task` to their task (man srun).
    """
    gpus, tasks = topology.gpus_per_node, topology.tasks_per_node
    if gpus and tasks > 1 and gpu_request == "gpus-per-task" and launcher.ranks_are_tasks:
        return (
            "each rank sees only its own GPU, as device 0 (--gpus-per-task): a program that uses "
            "device LOCAL_RANK fails; use LOCAL_RANK % torch.cuda.device_count()",
        )
    if not gpus or gpus == tasks:
        return ()
    if tasks > gpus:
        return (
            f"{tasks} ranks for {gpus} GPU{'s' if gpus > 1 else ''} of a node: NCCL refuses two "
            "ranks on one GPU",
        )
    if gpus % tasks:
        return (f"{gpus} GPUs for {tasks} ranks of a node: {gpus % tasks} remain unused",)
    if not launcher.data_parallel:
        return ()
    advice = f"DistributedDataParallel with a rank for each GPU (tasks_per_node: {gpus}) is faster"
    who = "the rank sees" if tasks == 1 else f"each of {tasks} ranks sees"
    return (
        f"{who} all {gpus} GPUs of its node (DataParallel, or a model over several GPUs); "
        f"if it is DataParallel, {advice}",
    )


def core_warnings(context: Context, settings: Mapping[str, Setting]) -> Iterator[str]:
    """Warn of a GPU that gets one core because nobody stated how many there are."""
    cores = settings["cpus_per_task"]
    if settings["gpus_per_node"].value and cores.value == 1 and cores.origin == "default":
        yield (
            f"1 core for each rank, which may be too few for a GPU: {context.site.value.name} does "
            "not state the cores of its nodes; --cpus-per-task 8, or --exclusive for whole nodes"
        )


def _gpus(context: Context) -> Setting:
    given = from_job(context.job, "resources.gpus_per_node")
    if given:
        return given
    here, site = context.partition.gpus_per_node or 0, context.site.value
    if context.batch.this_machine:
        tasks = context.job.value.resources.tasks_per_node or 1
        return rule(min(tasks, here), f"one for each rank while there are some; here: {here}")
    # If no option requests GPUs, a job gets all GPUs of its nodes.
    if (site.gpu_request == "none" or context.batch.whole_nodes) and here:
        origin = context.origin("gpus_per_node")
        return Setting(value=here, origin=origin, why="they come with the nodes")
    return default(0, "none requested")


def _cpus(context: Context, tasks: int, gpus: int) -> Setting:
    given = from_job(context.job, "resources.cpus_per_task")
    if given:
        return given
    key, cores, what = _cores(context.partition, gpus)
    if not cores:
        return _counted_in_job(context) or default(1, "the site's cores per node are not known")
    why = f"{cores} cores{what} for {tasks} rank{'s' if tasks > 1 else ''}"
    return Setting(value=max(1, cores // tasks), origin=context.origin(key), why=why)


def _counted_in_job(context: Context) -> Setting | None:
    """Return None as the number of cores if they come with the nodes, or by the site's own rule."""
    site, asked = context.site, from_job(context.job, "resources.exclusive")
    if not context.batch.cores:
        return None
    if takes_whole_nodes(context):
        why = "all cores of whole nodes, divided by the ranks of a node in the job"
        origin = asked.origin if asked else context.near("exclusive")
        return Setting(value=None, origin=origin, why=why)
    if site.value.cpu_request == "forbidden":
        why = "the cores that the site gives, divided by the ranks of a node in the job"
        return Setting(value=None, origin=site.near("cpu_request"), why=why)
    return None


def _cores(partition: Partition, gpus: int) -> tuple[str, int, str]:
    """Return the profile's key for the cores of a job on a node, their number, and the basis.

    On a shared node, a job with some of the GPUs gets only their share of the cores.
    """
    of_gpus = f" with {gpus} GPU{'s' if gpus > 1 else ''}"
    if gpus and partition.cpus_per_gpu:
        return "cpus_per_gpu", partition.cpus_per_gpu * gpus, of_gpus
    cores, there = partition.cpus_per_node or 0, partition.gpus_per_node
    if partition.shared and gpus and there and gpus < there:
        return "cpus_per_node", cores * gpus // there, of_gpus
    return "cpus_per_node", cores, ""


def rendezvous_settings(site: SourcedSite) -> dict[str, Setting]:
    """Return the host and the port, with their reasons."""
    meeting = site.value.rendezvous
    free = f"first free one of {meeting.ports}, tried on rank 0's host when the job starts"
    host = Setting(value=meeting.host + meeting.suffix, origin=site.origin("rendezvous.host"))
    port = Setting(value=meeting.port, origin=site.origin("rendezvous.port"), why=free)
    return {"rendezvous.host": host, "rendezvous.port": port}


def resolve_elastic(job: SourcedJob) -> Elastic | None:
    """Return the complete bounds; None for a job that is not elastic.

    Raises:
        PlanError: the bounds contradict the job's number of nodes.
    """
    wanted = job.value.elastic
    if wanted is None:
        return None
    nodes = job.value.resources.nodes
    most = wanted.max_nodes or nodes
    fewest = wanted.min_nodes or most
    if not fewest <= most <= nodes:
        raise PlanError(
            f"{job.near('elastic')}: elastic needs min_nodes <= max_nodes <= the job's nodes, "
            f"not {fewest}, {most}, {nodes}"
        )
    return Elastic(min_nodes=fewest, max_nodes=most, max_restarts=wanted.max_restarts)


def check_elastic(context: Context) -> None:
    """Refuse an elastic job under a launcher whose ranks all end with the first one.

    Raises:
        PlanError: with the launchers of the site that support it.
    """
    job, launcher = context.job, context.launcher
    if not job.value.elastic:
        return
    instead = context.batch.instead.get("elastic")
    # Before the launcher: no other one helps.
    if job.value.resources.nodes > 1 and instead:
        raise PlanError(
            f"{job.near('elastic')}: the job cannot be elastic on several nodes of "
            f"{context.site.value.name}: {instead}",
            "leave elastic out, or nodes: 1",
        )
    if not launcher.elastic:
        raise PlanError(
            f"{job.near('elastic')}: the job cannot be elastic: all ranks of the launcher "
            f"{launcher.name} end with the first one",
            f"{other_launchers(context)}, or leave elastic out",
        )


def elastic_directives(elastic: Elastic | None, nodes: int) -> tuple[tuple[str, str], ...]:
    """Keep the job after the loss of a node, if it can continue with fewer nodes."""
    spare = elastic is not None and (elastic.min_nodes or nodes) < nodes
    return (("no-kill", ""),) if spare else ()


QUEUE_OPTIONS = ("partition", "account", "qos", "constraint")


def written(settings: dict[str, Setting], key: str) -> Setting | None:
    """Return the setting of an option as it is passed to sbatch."""
    return settings.get(f"select.{key}") or settings.get(key)


def value_in(settings: Mapping[str, Setting], key: str) -> Any:
    """Return the value of a setting, if any."""
    return settings[key].value if key in settings else None


def word_in(settings: dict[str, Setting], key: str) -> str | None:
    """Return the value of an option as it is passed to sbatch, if any."""
    setting = written(settings, key)
    return setting.value if setting else None


def _selected(context: Context, select: Select) -> dict[str, Setting]:
    """Return below `select.` the values that are written instead of the job's."""
    job, site, key = context.job, context.site, context.key("select")
    any_name = job.value.partition if context.partition.name == ANY else None
    made = {
        "partition": Setting(
            value=select.partition or any_name,
            origin=site.near(key),
            why="the option that selects the partition",
        ),
        "qos": None if job.value.qos else from_site(site, f"{key}.qos", select.qos),
        "constraint": _constraint(context, select),
    }
    suffix, account = select.account_suffix, job.value.account
    if suffix and account and not account.endswith(suffix):
        why = f"{suffix} is the partition's ({context.near('select.account_suffix')})"
        made["account"] = Setting(value=account + suffix, origin=job.origin("account"), why=why)
    return {f"select.{name}": setting for name, setting in known(made).items()}


def _constraint(context: Context, select: Select) -> Setting | None:
    theirs, own = select.constraint, context.job.value.constraint
    if theirs is None or own is None:
        return from_site(context.site, context.key("select.constraint"), theirs)
    if set(theirs.split("&")) <= set(own.split("&")):
        return None
    parts = (f"({part})" if "|" in part else part for part in (theirs, own))
    why = f"with the partition's own ({context.near('select.constraint')})"
    return Setting(value="&".join(parts), origin=context.job.origin("constraint"), why=why)


# In sbatch's notation: all memory of each node.
ALL = "0"


def request_settings(
    context: Context, topology: Topology, partition: Setting | None
) -> dict[str, Setting]:
    """Return the requests; `partition` is the selected one.

    Raises:
        PlanError: the job has an option that the site forbids, or an account of another form.
    """
    job, exclusive = context.job, context.partition.exclusive or None
    why = "the site's jobs take whole nodes"
    whole = from_site(context.site, context.key("exclusive"), exclusive, why)
    given = {
        "time": from_job(job, "resources.time"),
        "mem": _memory(context, topology),
        "exclusive": from_job(job, "resources.exclusive") or whole,
        **type_settings(context, topology),
        **{key: from_job(job, key) for key in QUEUE_OPTIONS},
        "partition": partition,
        **(_selected(context, context.partition.select) if context.partition.select else {}),
        "comment": from_job(job, "comment"),
        "workdir": from_job(job, "workdir") or default(None, "where you submit"),
    }
    settings = known(given)
    pattern = context.site.value.account.pattern
    if pattern is not None and "account" in settings:
        _check_account(context, pattern, settings)
    return settings


def type_settings(context: Context, topology: Topology) -> dict[str, Setting]:
    """Return the GPU type in Slurm, if it is part of the request.

    Raises:
        PlanError: the job's type is not that of the partition.
    """
    profile, here = context.site.value, context.partition.gpu_type or ""
    model = context.partition.gpu_model or here
    if not topology.gpus_per_node:
        return {}
    asked = from_job(context.job, "resources.gpu_type")
    # a100_3g.20gb and nvidia_a100 are kinds of an A100.
    words = re.split("[_-]", asked.value.lower()) if asked else []
    if asked and model and not any(word in model.lower() for word in words):
        raise PlanError(
            f"{asked.origin}: gpu_type = {asked.value}, but {context.partition.name} has "
            f"{model} ({context.near('gpu_type' if here else 'gpu_model')})",
            f"{show(context.site)} prints the GPUs of each partition",
        )
    if asked and asked.value.lower() != here.lower():
        return {"gpu_type": asked}
    if not profile.gpu_request_typed:
        return {}
    why = "the site requires it in the request"
    setting = from_site(context.site, context.key("gpu_type"), here or None, why)
    return {"gpu_type": setting} if setting else {}


def memory_warnings(context: Context, topology: Topology) -> tuple[str, ...]:
    """A job without a request gets only the default, even on an exclusive node."""
    resources, profile = context.job.value.resources, context.site.value
    each, cores = profile.default_mem_per_cpu, topology.cpus_per_task
    if each and cores and not resources.mem and profile.mem_request == "allowed":
        given = Memory(each * cores * topology.tasks_per_node)
        return (
            f"no memory request: {profile.name} gives {each} for each core, {given} on each node "
            f"({context.site.near('default_mem_per_cpu')}); set resources.mem",
        )
    if not resources.exclusive or resources.mem or not context.batch.memory_by_request:
        return ()
    if profile.mem_request in ("forbidden", "zero"):
        return ()
    whole = context.partition.mem_per_node
    advice = f" (a node of {profile.name} has {whole})" if whole else ""
    return (
        f"{context.job.origin('resources.exclusive')}: exclusive without mem: the job may get no "
        f"more memory than the partition gives by default; set resources.mem{advice}",
    )


def memory_options(
    request: str, mem: Memory | str | None, gpus_per_node: int, cpus_per_node: int
) -> dict[str, str]:
    """Request memory in the site's form; a share is rounded down, so that it fits the node."""
    if mem is None:
        return {}
    shares = {"per-gpu": ("mem-per-gpu", gpus_per_node), "per-cpu": ("mem-per-cpu", cpus_per_node)}
    option, number = shares.get(request, ("mem", 0))
    if number and isinstance(mem, Memory):
        return {option: str(Memory(max(1, mem // number)))}
    return {"mem": str(mem)}


def _memory(context: Context, topology: Topology) -> Setting | None:
    """Return the memory of each node, if any is requested."""
    given, site = from_job(context.job, "resources.mem"), context.site
    request, each = site.value.mem_request, context.partition.mem_per_gpu
    gpus = topology.gpus_per_node
    if given and request == "forbidden":
        raise PlanError(
            f"{given.origin}: {site.value.name} forbids a memory request "
            f"({site.origin('mem_request')})",
            "leave mem out: it comes with the nodes, GPUs or cores",
        )
    if given is None and each and gpus and request in ("required", "per-gpu"):
        # The share of the GPUs, because the site requires a number.
        why = f"{each} with each of {gpus} GPU{'s' if gpus > 1 else ''}"
        return Setting(value=Memory(each * gpus), origin=context.origin("mem_per_gpu"), why=why)
    if given is None and request == "zero":
        return from_site(site, "mem_request", ALL, "all memory of the nodes")
    return given


def _check_account(context: Context, pattern: str, settings: dict[str, Setting]) -> None:
    account, whole = context.site.value.account, written(settings, "account")
    names = [settings["account"].value, whole.value if whole else None]
    if any(name is not None and whole_match(pattern, name) for name in names):
        return
    like = f"like {account.example}" if account.example else f"by {pattern}"
    raise PlanError(
        f"{asked_at(context.job, 'account')}account = {names[0]!r}, but "
        f"{context.site.value.name}'s are named {like} ({context.site.near('account.pattern')})",
        f"yours: {account.command}" if account.command else "",
    )
