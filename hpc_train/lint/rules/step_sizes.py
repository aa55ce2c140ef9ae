"""Rules on the size of a step: fewer GPUs than ranks, fewer ranks than tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.requested_resources import RequestedResources, gpu_count
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import (
    flag_number,
    nodes_of,
    rank_launches,
    tasks_of,
    workers_of,
)
from hpc_train.model.finding import Severity
from hpc_train.model.live_cluster import gres

_PLACED = ("--map-by", "-map-by", "--npernode", "-npernode", "--host", "-host", "--hostfile")
_PLACED_TOO = ("-H", "-N", "-ppn", "--ppn", "-hostfile", "--machinefile", "-machinefile", "-f")


@rule(
    "HT209",
    "error",
    "step with fewer GPUs than ranks",
    why="--gres and --gpus of srun count for the step: with --gres=gpu:1 it has one GPU on each "
    "node, whatever the job has, and several ranks share it or find no device.",
    advice="omit the option, so that the step gets the GPUs of the job, or request one per rank",
)
def step_with_few_gpus(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch in rank_launches(script):
        if launch.outer != "srun" or launch.opaque or launch.option("gpus-per-task", "het-group"):
            continue
        gpus, ranks = _gpus_of(launch, script), _ranks_on_node(launch, script)
        if gpus and ranks and ranks > gpus:
            message = f"{ranks} ranks on a node, but the step has {gpus} GPU{'s' * (gpus > 1)}"
            yield RuleHit(line=launch.line, message=message)


def _gpus_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return the GPUs of a step on each node, if its own options say it."""
    option = launch.option("gres", "gpus-per-node", "gpus")
    value = script.values.substitute(option.value or "") if option else ""
    if option is None or not value or "$" in value:
        return None
    if option.name == "gres":
        return sum(one.count for one in gres(value) if one.name == "gpu") or None
    count, nodes = gpu_count(value), nodes_of(launch, script)
    if option.name == "gpus-per-node":
        return count
    return count // nodes if count and nodes and count % nodes == 0 else None


def _ranks_on_node(launch: LaunchCommand, script: JobScript) -> int | None:
    if launch.starter == "accelerate":
        total, machines = (
            flag_number(launch, script, n) for n in ("num-processes", "num-machines")
        )
        return total // (machines or 1) if total else None
    if launch.starter not in ("torchrun", "python"):
        return None
    tasks, nodes = tasks_of(launch, script), nodes_of(launch, script)
    agents = tasks // nodes if tasks and nodes and tasks % nodes == 0 else None
    if launch.starter == "python":
        return agents
    workers = workers_of(launch, script)
    return workers * (agents or 1) if workers else None


@rule(
    "HT608",
    "warning",
    "mpirun with fewer ranks than tasks",
    why="The other tasks of the job, with their cores and GPUs, are charged and idle.",
    advice='write mpirun -np "$SLURM_NTASKS", or omit -np: the default is all tasks',
)
def fewer_than_tasks(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    runs = [launch for launch in rank_launches(script) if launch.outer == "mpirun"]
    tasks = script.asked.tasks
    if len(runs) != 1 or tasks is None or runs[0].command.ending == "&":
        return
    texts = [word.text for word in runs[0].words]
    if runs[0].starter != "python" or any(t.startswith(_PLACED) or t in _PLACED_TOO for t in texts):
        return
    wanted = _wanted(texts, script)
    if wanted is not None and 1 < wanted < tasks and wanted != script.asked.nodes:
        message = f"-np {wanted}, but the job has {tasks} tasks"
        severity = _severity(wanted, script)
        if severity:
            yield RuleHit(line=runs[0].line, message=message, severity=severity)


def _wanted(texts: list[str], script: JobScript) -> int | None:
    for index, text in enumerate(texts[:-1]):
        if text in ("-np", "-n", "--np", "-c"):
            return script.values.number(texts[index + 1])
        if not text.startswith("-") and index == 0:
            return None
    return None


def _severity(wanted: int, script: JobScript) -> Severity | None:
    """Tasks can be a way to request cores: only idle GPUs are certainly a mistake."""
    gpus, nodes = script.asked.gpus_per_node, script.asked.nodes
    if gpus and nodes:
        return "warning" if wanted < gpus * nodes else None
    threads = "OMP_NUM_THREADS" in script.text
    return None if threads or script.asked.has("gpus", "gpus-per-task", "gres") else "info"


# No process that loads torch fits into less.
_LEAST = {"mem": 1000, "mem-per-gpu": 1000, "mem-per-cpu": 65}
_GPUS = re.compile(r"^(?:([^:,=]+):)?(\d{1,6})")


@rule(
    "HT113",
    "warning",
    "memory in megabytes",
    why="A number without a unit is megabytes: --mem=64 requests 64 MB, and the job is killed when "
    "it loads torch.",
    advice="write the unit, e.g. --mem=64G",
)
def memory_without_unit(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    gpus = asked.has("gpus", "gpus-per-node", "gpus-per-task") or asked.gpus_per_node
    if not gpus and not any(rank_launches(script)):
        return
    for name, least in _LEAST.items():
        value = asked.value(name) or ""
        if re.fullmatch(r"\d{1,9}", value) and 0 < int(value) < least:
            message = f"--{name}={value} is {int(value)} MB"
            yield RuleHit(line=asked.line(name), message=message)


@rule(
    "HT114",
    "error",
    "numbers of GPUs that contradict each other",
    why="--gpus counts the GPUs of the whole job. sbatch refuses it unless it is the GPUs per node "
    "times the nodes, or the GPUs per task times the tasks, and unless all or none name a type.",
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
        yield RuleHit(line=asked.line("gpus", "gpus-per-task", "ntasks"), message=message)


def _against_nodes(asked: RequestedResources, kind: str, total: int) -> Iterator[RuleHit]:
    option = "gpus-per-node" if asked.has("gpus-per-node") else "gres"
    text = asked.value(option) or ""
    each = _gpus(text if option != "gres" else text.removeprefix("gpu:"))
    if each is None or not each[1] or not total or (option == "gres" and not _is_gpu(text)):
        return
    named = f"--{option}={text}"
    line = asked.line("gpus", option)
    if bool(kind) != bool(each[0]):
        yield RuleHit(line=line, message=f"{named} and --gpus: only one of them names a type")
    elif kind != each[0]:
        return
    elif total % each[1]:
        yield RuleHit(line=line, message=f"--gpus={total} is not a multiple of {named}")
    elif not _fits(asked.value("nodes"), total // each[1]):
        nodes = asked.value("nodes")
        needs = f"needs {total // each[1]} node{'s' * (total != each[1])}, not {nodes}"
        yield RuleHit(line=line, message=f"--gpus={total} with {named} {needs}")


def _is_gpu(gres: str) -> bool:
    return gres.startswith("gpu:")


def _gpus(text: str | None) -> tuple[str, int] | None:
    """Read `4` or `a100:4`: the type, which may be empty, and the number."""
    match = _GPUS.fullmatch(text or "")
    return (match[1] or "", int(match[2])) if match else None


def _fits(nodes: str | None, needed: int) -> bool:
    """Whether a number of nodes is within `2` or `2-4`; unknown forms fit."""
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", nodes or "")
    return match is None or int(match[1]) <= needed <= int(match[2] or match[1])
