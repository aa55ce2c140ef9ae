"""Rules on the cores of torchrun and its workers."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.requested_resources import RequestedResources
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import torchruns, workers_of

_SIZES = (
    "nodes", "ntasks", "ntasks-per-node", "gres", "gpus", "gpus-per-node", "gpus-per-task",
    "partition", "mem",
)  # fmt: skip


@rule(
    "HT221",
    "warning",
    "torchrun bound by srun",
    why="srun binds its task to cores and torchrun's workers inherit the binding: they share one "
    "set of cores, in the worst case one core.",
    advice='write srun --cpu-bind=none --cpus-per-task="$SLURM_CPUS_PER_TASK" torchrun …',
)
def torchrun_bound(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.sets("SLURM_CPU_BIND"):
        return
    for launch in torchruns(script):
        if launch.outer != "srun" or launch.option("cpu-bind") or launch.opaque:
            continue
        # A single worker does not share the set.
        if workers_of(launch, script) == 1:
            continue
        # If the mask contains all cores of the node, the binding costs little.
        sized = launch.option("cpus-per-task", "exclusive") is not None
        per_gpu = _has_cores_per_gpu(launch, script.asked)
        yield RuleHit(
            line=launch.line,
            message="srun binds torchrun, and so all its workers, to one set of cores",
            severity="info" if sized or per_gpu else None,
            advice="write srun --cpu-bind=none torchrun …" if per_gpu else None,
        )


def _has_cores_per_gpu(launch: LaunchCommand, asked: RequestedResources) -> bool:
    """Whether the cores come with the GPUs, so that SLURM_CPUS_PER_TASK is not set."""
    of_step = launch.option("cpus-per-gpu") is not None
    return of_step or (asked.has("cpus-per-gpu") and not asked.has("cpus-per-task"))


@rule(
    "HT222",
    "warning",
    "torchrun without cores",
    why="Without --cpus-per-task a task gets one core, and all workers and data loaders of the "
    "node share it, unless the partition allocates cores with each GPU.",
    advice="add #SBATCH --cpus-per-task=N, where N is the number of cores for all ranks of a node",
)
def torchrun_without_cores(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    given = ("cpus-per-task", "cpus-per-gpu", "exclusive", "mincpus", "tres-per-task")
    if not asked.batch or not asked.options or asked.has(*given) or asked.tasks_per_node != 1:
        return
    # The command line of sbatch, or the partition, gives more cores than the script shows.
    if not asked.has(*_SIZES) or _several_on_a_node(subject.script):
        return
    for launch in torchruns(subject.script):
        if not launch.option("cpus-per-task", "cpus-per-gpu"):
            yield RuleHit(line=launch.line, message="no --cpus-per-task for the workers of a node")
            return


def _several_on_a_node(script: JobScript) -> bool:
    """Whether a step starts several tasks on a node, for which one core would not suffice."""
    each = (one.option("ntasks-per-node") for one in script.launches if one.outer == "srun")
    return any(one.value != "1" for one in each if one)
