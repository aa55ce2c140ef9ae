"""Why a directive or an argument stands in the script, and which trap (docs/traps.md) it avoids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpc_train.model.plan import Setting
from hpc_train.model.value import Value


class Reason(Value, frozen=True, kw_only=True):
    """`trap` is its number in docs/traps.md, or empty."""

    why: str
    trap: str = ""


# Directives that are called otherwise than the setting which they come from.
_SETTINGS = {
    "job-name": "name",
    "ntasks-per-node": "tasks_per_node",
    "cpus-per-task": "cpus_per_task",
    "gpus-per-node": "gpus_per_node",
    "gres": "gpus_per_node",
    "signal": "signal_before_end",
    "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node",
    "mem-per-gpu": "mem",
    "mem-per-cpu": "mem",
}
_STEP_COUNTS = "counted for the step, so that nothing is taken from the job's variables"
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
    "open-mode": Reason(why="a requeued job adds to its log, and does not erase it", trap="F26"),
}
ARGUMENTS = {
    "srun": {
        "--nodes": Reason(why=_STEP_COUNTS, trap="F3"),
        "--ntasks": Reason(why=_STEP_COUNTS, trap="F3"),
        "--ntasks-per-node": Reason(why=_STEP_COUNTS, trap="F3"),
        "--cpus-per-task": Reason(why="Slurm 22.05 and 23.02 do not pass it to srun", trap="F1"),
        "--cpu-bind": Reason(
            why="else all ranks that an agent starts inherit its first core set", trap="F1"
        ),
        "--mpi": Reason(why="what the ranks' MPI can talk to", trap="F32"),
        "--kill-on-bad-exit": Reason(why="else the others wait for a dead rank", trap="F23"),
        "--wait": Reason(why="a rank that leaves early must not block the end", trap="F23"),
        "--no-kill": Reason(why="the others go on when a node is lost"),
        "--kill-on-bad-exit=0": Reason(why="the others go on without this one", trap="F23"),
        "--wait=0": Reason(why="the others go on as long as they want", trap="F23"),
        "--relative": Reason(why="the first nodes of an allocation that may be larger"),
        "--gpus-per-node": Reason(why="of the allocation's GPUs, those of this run"),
        "--gres": Reason(why="of the allocation's GPUs, those of this run"),
        "--gpus": Reason(why="of the allocation's GPUs, those of this run"),
        "--gpus-per-task": Reason(why="counted for the step, whose tasks may be fewer"),
    },
    "ibrun": {
        "-n": Reason(why="all ranks; ibrun takes the hosts from the allocation"),
        "-o": Reason(why="the first of them: the ranks begin at the allocation's first slot"),
    },
    "torchrun": {
        "--nnodes": Reason(why="a fixed number of agents, one on each node"),
        "--nproc-per-node": Reason(why="the ranks that an agent starts"),
        "--node-rank": Reason(why="expands on the node, not in the batch script", trap="F14"),
        "--master-addr": Reason(why="static rendezvous: rank 0 is where this says", trap="F13"),
        "--master-port": Reason(why="free on rank 0's host when the job starts", trap="F11"),
        "--no-python": Reason(
            why="each rank is started behind hpctrain's rank wrapper", trap="F24"
        ),
    },
    "accelerate": {
        "--multi_gpu": Reason(why="more than one rank"),
        "--num_machines": Reason(why="one agent on each node"),
        "--num_processes": Reason(why="the ranks of all nodes"),
        "--machine_rank": Reason(why="expands on the node, not in the batch script", trap="F14"),
        "--main_process_ip": Reason(why="where rank 0 is", trap="F12"),
        "--main_process_port": Reason(why="free on rank 0's host when the job starts", trap="F11"),
        "--num_cpu_threads_per_process": Reason(
            why="accelerate would write 1 over the ranks' threads", trap="F6"
        ),
        "--no_python": Reason(
            why="each rank starts behind the wrapper that records it", trap="F24"
        ),
    },
    "mpirun": {
        "-np": Reason(why="all ranks; Open MPI takes the hosts from Slurm"),
        "--host": Reason(why="this machine alone, with as many slots as ranks"),
        "--map-by": Reason(why="as many ranks on each node as were asked for", trap="F33"),
        "--bind-to": Reason(why="its default would hold a rank to one core or socket", trap="F33"),
        "-x": Reason(why="mpirun hands on only what it is told to", trap="F33"),
    },
}


def setting_of(option: str, settings: Mapping[str, Setting]) -> Setting:
    """Return the setting behind a directive, with the directive's own reason where it has one."""
    found = _found(option, settings)
    origin = found.origin if found else "rule"
    reason = DIRECTIVES.get(option)
    why = reason.why if reason else (found.why if found else "")
    return Setting(value=found.value if found else None, origin=origin, why=why)


def _found(option: str, settings: Mapping[str, Setting]) -> Setting | None:
    """Return what is written for the queue, what a job asked for, or what its storage needs."""
    own = settings.get(f"directives.{option}")
    # `false` only takes the site's away.
    if own is not None and own.value is not False:
        return own
    key = _SETTINGS.get(option, option.replace("-", "_"))
    requests = (name for name in settings if name.startswith("storage."))
    needed = next((name for name in requests if name.endswith(f" --{option}")), "")
    return settings.get(f"select.{option}") or settings.get(key) or settings.get(needed)


def directive_notes(
    directives: Sequence[tuple[str, str]], settings: Mapping[str, Setting]
) -> tuple[str, ...]:
    """Return a line for each directive: where it comes from, and why."""
    notes = []
    for option, _ in directives:
        setting = setting_of(option, settings)
        trap = DIRECTIVES[option].trap if option in DIRECTIVES else ""
        why = ": ".join(filter(None, (trap, setting.why)))
        notes.append(f"--{option}: " + "; ".join(filter(None, (setting.origin, why))))
    return tuple(notes)
