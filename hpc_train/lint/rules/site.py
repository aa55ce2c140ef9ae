"""Rules on the site: what its profile offers, limits and forbids."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.errors import nearest
from hpc_train.lint.rule import Hit, Subject, rule
from hpc_train.model.partition import Partition
from hpc_train.model.site import SiteProfile
from hpc_train.model.units import Memory

_TIME = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")


def slurm_seconds(text: str) -> int | None:
    """Read a time as sbatch does: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    days, first, second, third = (int(part) if part else 0 for part in match.groups())
    if match[1] is not None:
        return days * 86400 + first * 3600 + second * 60 + third
    if match[4] is not None:
        return first * 3600 + second * 60 + third
    return first * 60 + second


def _site(subject: Subject) -> SiteProfile | None:
    site = subject.context.site
    return site if site and site.scheduler == "slurm" and subject.script.asked.batch else None


def _partition(subject: Subject) -> Partition | None:
    site = _site(subject)
    if site is None:
        return None
    name = subject.script.asked.value("partition")
    for partition in site.partitions:
        if partition.name == name or (name is None and partition.default):
            return partition
    return None


@rule(
    "HT701",
    "error",
    "partition that the site has not",
    why="sbatch refuses a job for a partition that does not exist.",
    advice="name one of the site's partitions",
)
def unknown_partition(subject: Subject) -> Iterator[Hit]:
    site, asked = _site(subject), subject.script.asked
    given = asked.value("partition")
    names = [partition.name for partition in site.partitions] if site else []
    if site is None or not names or not given or "$" in given:
        return
    for name in given.split(","):
        if name not in names:
            message = f"{site.name} has no partition {name!r}{nearest(name, names)}"
            advice = f"known: {', '.join(sorted(names))}"
            yield Hit(line=asked.line("partition"), message=message, advice=advice)


@rule(
    "HT702",
    "error",
    "more than the partition has",
    why="A job that asks for more nodes, GPUs, cores, memory or time than the partition "
    "gives is refused, or waits for ever.",
    advice="ask for less, or name a partition with more",
)
def over_the_limit(subject: Subject) -> Iterator[Hit]:
    partition, asked = _partition(subject), subject.script.asked
    if partition is None:
        return
    time = slurm_seconds(asked.value("time") or "")
    cores = (asked.tasks_per_node or 0) * (asked.cpus_per_task or 1)
    gpus = ("gpus-per-node", "gres", "gpus")
    sizes = (
        (("time",), time, partition.max_time),
        (("nodes",), asked.nodes, partition.max_nodes),
        (gpus, asked.gpus_per_node, partition.gpus_per_node),
        (("ntasks-per-node", "cpus-per-task"), cores, partition.cpus_per_node),
        (("mem",), _memory(asked.value("mem")), partition.mem_per_node),
    )
    for names, wanted, limit in sizes:
        if wanted and limit is not None and wanted > limit:
            there = [f"--{name}" for name in names if asked.has(name)]
            shown = f"{wanted} cores a node" if len(names) == 2 else asked.value(there[0][2:])
            message = f"{' x '.join(there)}: {shown}, but {partition.name} has at most {limit}"
            yield Hit(line=asked.line(*names), message=message)


def _memory(text: str | None) -> int | None:
    """A bare number is megabytes."""
    try:
        return Memory.parse(f"{text}M" if (text or "").isdigit() else text)
    except ValueError:
        return None


@rule(
    "HT703",
    "error",
    "launcher that the site forbids",
    why="The site's profile says that this launcher must not or cannot be used there.",
    advice="use one of the launchers that the profile allows",
)
def forbidden_launcher(subject: Subject) -> Iterator[Hit]:
    site = subject.context.site
    if site is None:
        return
    for launch in subject.script.launches:
        for name in dict.fromkeys((launch.outer, launch.starter)):
            if name in site.launchers.forbidden:
                reason = site.launchers.forbidden[name]
                advice = f"allowed: {', '.join(site.launchers.allowed)}"
                message = f"{site.name} forbids {name}: {reason}"
                yield Hit(line=launch.line, message=message, advice=advice)


@rule(
    "HT704",
    "warning",
    "no account",
    why="The site refuses jobs without an account, unless SBATCH_ACCOUNT is set where you submit.",
    advice="add #SBATCH --account=NAME",
)
def no_account(subject: Subject) -> Iterator[Hit]:
    site, asked = _site(subject), subject.script.asked
    if site and site.account.required and not asked.has("account"):
        yield Hit(line=1, message=f"{site.name} needs an account")


@rule(
    "HT705",
    "error",
    "memory where the site forbids it",
    why="The site gives memory with the nodes, GPUs or cores, and refuses jobs that ask for it.",
    advice="leave the option out",
)
def memory_forbidden(subject: Subject) -> Iterator[Hit]:
    site, asked = _site(subject), subject.script.asked
    for name in ("mem", "mem-per-cpu", "mem-per-gpu"):
        if site and site.mem_request == "forbidden" and asked.has(name):
            yield Hit(line=asked.line(name), message=f"{site.name} forbids --{name}")


@rule(
    "HT706",
    "warning",
    "GPUs asked for in another way than the site's",
    why="Sites differ in the option that asks for GPUs; the other one is refused there, or "
    "gives none.",
    advice="write it as the site's profile says",
)
def other_gpu_request(subject: Subject) -> Iterator[Hit]:
    site, asked = _site(subject), subject.script.asked
    if site is None:
        return
    gres = "gpu" in (asked.value("gres") or "")
    if site.gpu_request == "gres" and asked.has("gpus-per-node") and not gres:
        line = asked.line("gpus-per-node")
        yield Hit(line=line, message=f"{site.name} asks for GPUs with --gres=gpu:N")
