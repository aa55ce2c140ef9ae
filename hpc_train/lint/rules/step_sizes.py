"""Rules on the size of a step: fewer GPUs than ranks, fewer ranks than tasks."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.requested_resources import gpu_count
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
