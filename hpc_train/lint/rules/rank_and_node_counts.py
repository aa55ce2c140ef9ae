"""Functions on launches that several rules use."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lint.control_flow import repeats
from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand

_REMOTE = ("ssh", "pdsh", "clush", "parallel", "pbsdsh")
_STARTERS = ("python", "torchrun", "accelerate", "deepspeed")


def rank_launches(script: JobScript) -> Iterator[LaunchCommand]:
    """Yield the launches of training: not `srun hostname`, not `python -c …`."""
    for launch in script.launches:
        if launch.starter in _STARTERS and not launch.asks:
            yield launch


def torchruns(script: JobScript) -> Iterator[LaunchCommand]:
    """Yield the launches of training by torchrun."""
    for launch in rank_launches(script):
        if launch.starter == "torchrun":
            yield launch


def tasks_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return how many tasks an srun starts, if that is known."""
    option = launch.option("ntasks")
    if option:
        return script.values.number(option.value)
    nodes, each = launch.option("nodes"), launch.option("ntasks-per-node")
    if not nodes and not each:
        return script.asked.tasks
    count = script.values.number(nodes.value) if nodes else script.asked.nodes
    per_node = script.values.number(each.value) if each else script.asked.tasks_per_node
    return count * per_node if count and per_node else None


def starts_several(launch: LaunchCommand, script: JobScript) -> bool:
    """Return whether an srun certainly starts more than one task."""
    tasks = tasks_of(launch, script)
    if tasks is None and not launch.option("ntasks", "nodes", "ntasks-per-node"):
        tasks = script.asked.tasks_per_node
    return tasks is not None and tasks > 1


def nodes_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return on how many nodes an srun starts tasks, if that is known."""
    option = launch.option("nodes")
    return script.values.number(option.value) if option else script.asked.nodes


def is_one_of_several(launch: LaunchCommand, script: JobScript) -> bool:
    """Whether further launches beside this one start the other nodes of the same run.

    A loop with one srun for each node; a step of a head node beside steps of workers; ssh.
    """
    if repeats(script.around(launch.command)) or any(script.runs(*_REMOTE)):
        return True
    steps = [one for one in script.launches if one.outer == "srun" and one.command.ending == "&"]
    return launch in steps and launch.option("nodelist", "relative", "nodes") is not None


def flag_number(launch: LaunchCommand, script: JobScript, name: str) -> int | None:
    """Return the value of a torchrun flag as a number, if that is known; None for a range."""
    low, _, high = (launch.flags.get(name) or "").partition(":")
    return script.values.number(low) if high in ("", low) else None


def workers_of(launch: LaunchCommand, script: JobScript) -> int | None:
    """Return how many ranks one torchrun starts, if that is known."""
    if "nproc-per-node" in launch.flags:
        return flag_number(launch, script, "nproc-per-node")
    return None if script.sets("PET_NPROC_PER_NODE") or hides_flags(launch) else 1


def hides_flags(launch: LaunchCommand) -> bool:
    """Whether a word with an unknown value may be an option of torchrun."""
    return any(word.text.startswith("$") for word in launch.words)
