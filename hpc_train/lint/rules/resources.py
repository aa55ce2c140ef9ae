"""Rules on the requested resources: options that exclude, contradict or require one another."""

import re
from collections.abc import Iterator

from hpc_train.base.slurm_options import gres
from hpc_train.base.values import older
from hpc_train.lint.directives import RequestedResources
from hpc_train.lint.launches import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import rank_launches, tasks_of

_GPUS = re.compile(r"^(?:([^:,=]+):)?(\d{1,6})")
_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")


@rule(
    "HT101",
    "error",
    "GPUs requested in two ways",
    advice="keep one; --gpus-per-node=N unless the site requires --gres=gpu:N",
)
def gpus_twice(subject: Subject) -> Iterator[RuleHit]:
    version, asked = subject.context.slurm, subject.script.asked
    given, again = asked.value("gres") or "", asked.value("gpus-per-node") or ""
    if "gpu" not in given or not again:
        return
    first, second = [one for one in gres(given) if one.name == "gpu"], gres(f"gpu:{again}")
    kinds = {one.kind for one in (*first, *second)}
    line = asked.line("gres", "gpus-per-node")
    if len(kinds) > 1 or sum(g.count for g in first) != sum(g.count for g in second):
        yield RuleHit(line, f"--gres={given}, but --gpus-per-node={again}")
    elif version is None or not older(version, "26.05"):
        message = f"--gres={given} and --gpus-per-node={again}: Slurm refuses both from 26.05 on"
        yield RuleHit(line, message, severity="info" if version is None else None)


@rule(
    "HT102",
    "warning",
    "--gpus-per-task with several ranks on a node",
    advice="request GPUs per node (--gpus-per-node=N) and let each rank use the GPU of its local "
    "rank",
)
def gpus_per_task(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    steps = list(rank_launches(script, outer="srun"))
    # A step with one task has no other rank to communicate with.
    if steps and all(tasks_of(step, script) == 1 for step in steps):
        return
    bind = f"{asked.value('gpu-bind')} {asked.value('tres-bind')}"
    site = subject.context.site
    several = (asked.tasks_per_node or 0) > 1 or (asked.nodes == 1 and (asked.tasks or 0) > 1)
    # A site may allow no other option.
    if not several or (site is not None and site.gpu_request == "gpus-per-task"):
        return
    message = "--gpus-per-task hides the GPUs of a node from one another"
    if asked.has("gpus-per-task") and "none" not in bind:
        yield RuleHit(asked.line("gpus-per-task"), message)
    for step in steps:
        own = step.option("gpu-bind", "tres-bind")
        if step.option("gpus-per-task") and "none" not in f"{bind} {own.value if own else ''}":
            yield RuleHit(step.line, message)


@rule(
    "HT103",
    "error",
    "options that exclude one another",
    advice="keep one; --cpus-per-task means the same on every version",
)
def two_of_a_kind(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    for names in (_MEMORY, ("cpus-per-gpu", "cpus-per-task")):
        there = [name for name in names if asked.has(name)]
        if len(there) > 1:
            named = " and ".join(f"--{name}" for name in there)
            yield RuleHit(asked.line(*there), f"{named}: sbatch accepts only one of them")


@rule("HT105", "info", "no --time", advice="add #SBATCH --time=HH:MM:SS")
def no_time(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    if asked.batch and asked.options and not asked.has("time"):
        yield RuleHit(1, "no --time: the partition's default applies")


@rule(
    "HT106",
    "warning",
    "more ranks than GPUs",
    advice="set --ntasks-per-node to the number of GPUs per node",
)
def more_ranks_than_gpus(subject: Subject) -> Iterator[RuleHit]:
    for launch, tasks, gpus in _srun_ranks(subject):
        if tasks > gpus:
            yield RuleHit(launch.line, f"{tasks} ranks on a node, but {gpus} GPU{'s' * (gpus > 1)}")


@rule(
    "HT107",
    "info",
    "fewer ranks than GPUs",
    advice="set --ntasks-per-node to the number of GPUs per node, or use torchrun",
)
def fewer_ranks_than_gpus(subject: Subject) -> Iterator[RuleHit]:
    for launch, tasks, gpus in _srun_ranks(subject):
        if tasks < gpus:
            message = f"{tasks} rank{'s' * (tasks > 1)} on a node, but {gpus} GPUs"
            devices = re.search(r"--(?:trainer\.)?devices[= ](\d{1,3})\b", " ".join(launch.texts))
            # Below srun, Lightning starts no ranks itself.
            waits = _LIGHTNING.search(subject.script.text) and devices and int(devices[1]) > tasks
            yield RuleHit(launch.line, message, severity="warning" if waits else None)


_LIGHTNING = re.compile(r"--trainer\.(?:devices|num_nodes)|lightning", re.IGNORECASE)


@rule(
    "HT122",
    "warning",
    "Lightning with --ntasks",
    advice="write --ntasks-per-node=N, with the number of devices",
)
def lightning_tasks(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    if (asked.tasks or 0) < 2 or not asked.has("ntasks") or asked.has("ntasks-per-node"):
        return
    steps = list(rank_launches(script, "python", outer="srun"))
    if _LIGHTNING.search(script.text) and steps and not steps[0].option("ntasks-per-node"):
        message = f"Lightning refuses --ntasks={asked.tasks} without --ntasks-per-node"
        yield RuleHit(asked.line("ntasks"), message)


@rule(
    "HT120", "error", "--gpus-per-task without a number of tasks", advice="add #SBATCH --ntasks=N"
)
def gpus_of_unknown_tasks(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    if not asked.has("gpus-per-task") or asked.has("ntasks", "ntasks-per-node", "gpus"):
        return
    if not asked.has("nodes") or asked.has("cpus-per-task"):
        each = asked.value("gpus-per-task")
        message = f"--gpus-per-task={each}, and neither --ntasks nor --gpus"
        yield RuleHit(asked.line("gpus-per-task"), message)


def _srun_ranks(subject: Subject) -> Iterator[tuple[LaunchCommand, int, int]]:
    """Yield the launches of python by srun with the tasks and the GPUs of a node."""
    asked = subject.script.asked
    sizes = ("ntasks", "ntasks-per-node", "nodes", "gpus", "gpus-per-node", "gres", "het-group")
    tasks, gpus = asked.tasks_per_node, asked.gpus_per_node
    for launch in rank_launches(subject.script, "python", outer="srun"):
        if tasks and gpus and not launch.option(*sizes) and not launch.opaque:
            yield launch, tasks, gpus


@rule(
    "HT108",
    "warning",
    "--ntasks is not nodes x --ntasks-per-node",
    advice="omit --ntasks, or make the numbers consistent",
)
def tasks_do_not_agree(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    if not asked.has("ntasks") or not asked.has("ntasks-per-node") or not asked.has("nodes"):
        return
    nodes, tasks, each = asked.nodes, asked.tasks, asked.tasks_per_node
    if nodes and tasks and each and nodes * each != tasks:
        message = f"--ntasks={tasks}, but {nodes} nodes x {each} tasks are {nodes * each}"
        yield RuleHit(asked.line("ntasks", "ntasks-per-node"), message)


@rule(
    "HT109",
    "info",
    "--exclusive without memory",
    advice="add --mem=0, which is all memory of the node, where the site allows it",
)
def exclusive_without_memory(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    if asked.has("exclusive") and not asked.has(*_MEMORY):
        line = asked.line("exclusive")
        yield RuleHit(line, "--exclusive, but the memory is the partition's default")


# No process that loads torch fits into less.
_LEAST = {"mem": 1000, "mem-per-gpu": 1000, "mem-per-cpu": 65}


@rule("HT113", "warning", "memory in megabytes", advice="write the unit, e.g. --mem=64G")
def memory_without_unit(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    if not asked.gpus and not any(rank_launches(script)):
        return
    for name, least in _LEAST.items():
        value = asked.value(name) or ""
        if re.fullmatch(r"\d{1,9}", value) and 0 < int(value) < least:
            yield RuleHit(asked.line(name), f"--{name}={value} is {int(value)} MB")


@rule(
    "HT114",
    "error",
    "numbers of GPUs that contradict each other",
    advice="keep one option; --gpus-per-node=N unless the site requires --gres=gpu:N",
)
def contradicting_gpus(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    total = _gpus(asked.value("gpus"))
    if total is None:
        return
    yield from _against_nodes(asked, *total)
    tasks, each = asked.value("ntasks") or "", _gpus(asked.value("gpus-per-task"))
    if each and re.fullmatch(r"\d{1,6}", tasks) and int(tasks) * each[1] != total[1]:
        message = (
            f"--gpus={total[1]}, but {tasks} tasks x {each[1]} GPUs are {int(tasks) * each[1]}"
        )
        yield RuleHit(asked.line("gpus", "gpus-per-task", "ntasks"), message)


def _against_nodes(asked: RequestedResources, kind: str, total: int) -> Iterator[RuleHit]:
    option = "gpus-per-node" if asked.has("gpus-per-node") else "gres"
    text = asked.value(option) or ""
    each = _gpus(text if option != "gres" else text.removeprefix("gpu:"))
    if each is None or not each[1] or not total:
        return
    if option == "gres" and not text.startswith("gpu:"):
        return
    named = f"--{option}={text}"
    line = asked.line("gpus", option)
    if bool(kind) != bool(each[0]):
        yield RuleHit(line, f"{named} and --gpus: only one of them names a type")
    elif kind != each[0]:
        return
    elif total % each[1]:
        yield RuleHit(line, f"--gpus={total} is not a multiple of {named}")
    elif not _fits(asked.value("nodes"), total // each[1]):
        nodes = asked.value("nodes")
        needs = f"needs {total // each[1]} node{'s' * (total != each[1])}, not {nodes}"
        yield RuleHit(line, f"--gpus={total} with {named} {needs}")


def _gpus(text: str | None) -> tuple[str, int] | None:
    """Read `4` or `a100:4`: the type, which may be empty, and the number."""
    match = _GPUS.fullmatch(text or "")
    return (match[1] or "", int(match[2])) if match else None


def _fits(nodes: str | None, needed: int) -> bool:
    """Whether a number of nodes is within `2` or `2-4`; unknown forms fit."""
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", nodes or "")
    return match is None or int(match[1]) <= needed <= int(match[2] or match[1])
