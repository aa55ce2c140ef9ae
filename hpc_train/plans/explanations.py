"""The reason for each directive, and the trap (docs/traps.md) that it avoids."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.base.value import Value
from hpc_train.plans.plan import Setting


class Reason(Value, frozen=True, kw_only=True):
    """`trap` is its number in docs/traps.md, or empty."""

    why: str
    trap: str = ""


# The settings that say where each local rank runs.
LOCAL_RANK = "local_rank."
# Directives whose name differs from that of their setting.
_SETTINGS = {
    "job-name": "name",
    "ntasks-per-node": "tasks_per_node",
    "cpus-per-task": "cpus_per_task",
    "gpus-per-node": "gpus_per_node",
    "gres": "gpus_per_node",
    "signal": "signal_before_end",
    "requeue": "lifecycle.requeue_on",
    "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node",
    "mem-per-gpu": "mem",
    "mem-per-cpu": "mem",
    # Of PBS, whose -A or -P is the project.
    "N": "name",
    "q": "partition",
    "A": "account",
    "P": "account",
    "select": "nodes",
    "place": "exclusive",
    "ncpus": "cpus_per_task",
    "ngpus": "gpus_per_node",
    "walltime": "time",
}
_GPUS = Reason(
    why="asked per node, so that every rank sees its node's GPUs and peer access works", trap="F7"
)
DIRECTIVES = {
    "ntasks-per-node": Reason(why="one slot for each process that the launcher starts on a node"),
    "cpus-per-task": Reason(why="the cores of all ranks of a slot", trap="F1"),
    "gpus-per-node": _GPUS,
    "gres": _GPUS,
    "gpus": Reason(why="of all nodes: the site's own form"),
    "gpus-per-task": Reason(
        why="the site's own form; a rank may see its own GPU only, which then is number 0",
        trap="F7",
    ),
    "mem": Reason(why="per node, the only form of the three", trap="F5"),
    "mem-per-gpu": Reason(why="a node's memory over its GPUs: the site's own form", trap="F5"),
    "mem-per-cpu": Reason(why="a node's memory over its cores: the site's own form", trap="F5"),
    "signal": Reason(
        why="the ranks may save what they have; their agents ignore it, and B: is for the script, "
        "which hands it on",
        trap="F29",
    ),
    "requeue": Reason(
        why="Slurm queues the job again after a preemption or the loss of a node", trap="F27"
    ),
    "select": Reason(
        why="a chunk for each node; mpiprocs is the number of processes that start on it"
    ),
    "place": Reason(why="without scatter, PBS packs the chunks onto one node"),
    "j": Reason(why="errors and output in one file"),
    "k": Reason(why="otherwise PBS keeps the output on the node until the end"),
    "r": Reason(why="otherwise PBS starts a lost job again, and mixes the measurements of both"),
    "open-mode": Reason(why="a requeued job adds to its log, and does not erase it", trap="F26"),
}


def setting_of(option: str, settings: Mapping[str, Setting]) -> Setting:
    """Return the setting of a directive, with the directive's own reason if it has one."""
    found = _found(option, settings)
    origin = found.origin if found else "rule"
    reason = DIRECTIVES.get(option)
    why = reason.why if reason else (found.why if found else "")
    return Setting(value=found.value if found else None, origin=origin, why=why)


def _found(option: str, settings: Mapping[str, Setting]) -> Setting | None:
    """Return the setting of the queue, of a request of the job, or of its storage."""
    own = settings.get(f"directives.{option}")
    # `false` only removes the site's option.
    if own is not None and own.value is not False:
        return own
    resources = settings.get("directives.l")
    if resources is not None and f"{option}=" in str(resources.value):
        return resources
    key = _SETTINGS.get(option, option.replace("-", "_"))
    requests = (name for name in settings if name.startswith("storage."))
    needed = next((name for name in requests if name.endswith(f" --{option}")), "")
    return settings.get(f"select.{option}") or settings.get(key) or settings.get(needed)
