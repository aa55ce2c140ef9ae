"""The requests of a job besides counts: time, memory, whole nodes, queue, required options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hpc_train.base.errors import PlanError
from hpc_train.base.regex import whole_match
from hpc_train.base.units import Memory
from hpc_train.jobs.job import Topology
from hpc_train.plans.context import Context, asked_at, default, from_job, from_site, known
from hpc_train.plans.plan import Setting
from hpc_train.plans.storage import storage_settings
from hpc_train.sites.partition import ANY, Select

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
            value=select.partition or any_name, origin=site.near(key), why="what leads there"
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
        **storage_settings(job, context.site),
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
            f"hpctrain site show {profile.name} prints the GPUs of each partition",
        )
    if asked and asked.value.lower() != here.lower():
        return {"gpu_type": asked}
    if not profile.gpu_request_typed:
        return {}
    why = "the site wants it in the request"
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
            f"({context.site.near('default_mem_per_cpu')}); name resources.mem",
        )
    if not resources.exclusive or resources.mem or not context.batch.memory_by_request:
        return ()
    if profile.mem_request in ("forbidden", "zero"):
        return ()
    whole = context.partition.mem_per_node
    advice = f" (a node of {profile.name} has {whole})" if whole else ""
    return (
        f"{context.job.origin('resources.exclusive')}: exclusive without mem: the job may get no "
        f"more memory than the partition gives by default; name resources.mem{advice}",
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
