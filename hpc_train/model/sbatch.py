"""The options of sbatch, and those that a job or a profile may set in `directives`."""

from __future__ import annotations

from hpc_train.errors import nearest
from hpc_train.model.plan import DIRECTIVE_VALUE

# Slurm 20.11 to 25.11; `=`: takes a value, `?`: may take one after `=`.
SHARED = """
acctg-freq= account= bb= bbf= begin= chdir= cluster-constraint= clusters= comment=
consolidate-segments constraint= container= container-id= contiguous core-spec= cores-per-socket=
cpu-freq= cpus-per-gpu= cpus-per-task= deadline= delay-boot= dependency= error= exclude=
exclusive? export= external-launcher extra= extra-node-info= gid= gpu-bind= gpu-freq= gpus=
gpus-per-node= gpus-per-socket= gpus-per-task= gres= gres-flags= help hint= hold input= jobid=
job-name= kill-on-invalid-dep= licenses= mail-type= mail-user= mcs-label= mem= mem-bind=
mem-per-cpu= mem-per-gpu= mincpus= network= nice? no-kill? nodefile= nodelist= nodes= ntasks=
ntasks-per-core= ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= ntasks-per-tres=
oom-kill-step? open-mode= output= overcommit oversubscribe partition= power= prefer= priority=
profile= propagate? qos= quiet reboot reservation= resv-ports? segment= signal= sockets-per-node=
spread-job spread-segments stepmgr switches= thread-spec= threads-per-core= time= time-min= tmp=
tree-width= tres-bind= tres-per-task= uid= usage use-min-nodes verbose version wckey= distribution=
"""
_SBATCH = """
array= batch= export-file= get-user-env? ignore-pbs no-requeue parsable requeue requeue-delay=
test-only wait wait-all-nodes= wrap= hetjob
"""
PYXIS = """
container-image=
container-mounts= container-workdir= container-name= container-save= container-env=
container-mount-home no-container-mount-home container-remap-root no-container-remap-root
container-entrypoint no-container-entrypoint container-entrypoint-log container-writable
container-readonly
"""
# Options that hpctrain writes itself -> the key to use instead.
_OURS = {
    "job-name": "name",
    "nodes": "resources.nodes",
    **dict.fromkeys(
        ("ntasks", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-core"),
        "resources.tasks_per_node",
    ),
    "cpus-per-task": "resources.cpus_per_task",
    **dict.fromkeys(
        ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "ntasks-per-gpu"),
        "resources.gpus_per_node",
    ),
    **dict.fromkeys(("cpus-per-gpu", "tres-per-task"), "resources.cpus_per_task"),
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), "resources.mem"),
    "time": "resources.time",
    "exclusive": "resources.exclusive",
    **{key: key for key in ("account", "partition", "qos", "constraint", "comment")},
    "chdir": "workdir",
    "no-kill": "elastic.min_nodes",
    "signal": "signal_before_end",
    **dict.fromkeys(("export", "export-file", "get-user-env"), "env"),
    "array": "repetitions of a study",
    **dict.fromkeys(("container", "container-id", "container-image"), "container.image"),
    "container-mounts": "container.mounts",
    "container-workdir": "container.workdir",
    "container-env": "container.env",
    "container-writable": "container.writable",
}
# Options that would disable the log, the tracking or the script of the job.
_NEVER = frozenset(
    """
    output error input open-mode wrap hetjob wait parsable test-only help usage version verbose
    quiet ignore-pbs jobid
    """.split()
)


def option_table(*texts: str) -> dict[str, str]:
    """Return option -> `=`, `?` or empty: whether it takes a value."""
    words = " ".join(texts).split()
    return {word.rstrip("=?"): word[-1] if word[-1] in "=?" else "" for word in words}


SBATCH_OPTIONS = option_table(SHARED, _SBATCH, PYXIS)


def directive_text(value: str | int | bool) -> str | None:
    """Return an option's value for sbatch: empty for an option without value, None to omit it."""
    if isinstance(value, bool):
        return "" if value else None
    return str(value)


def directive_problem(name: str, value: str | int | bool) -> tuple[str, str] | None:
    """Return the error of an option and the remedy; None if it is valid."""
    if name in _OURS:
        return f"hpctrain sets --{name} itself", f"use {_OURS[name]}"
    if name in _NEVER:
        return f"hpctrain needs --{name} to track the run", ""
    if name not in SBATCH_OPTIONS:
        near = nearest(name.lstrip("-").replace("_", "-"), SBATCH_OPTIONS)
        return f"sbatch has no option {name!r}{near}", "write long names, without leading dashes"
    return _value_problem(name, directive_text(value))


def _value_problem(name: str, text: str | None) -> tuple[str, str] | None:
    kind = SBATCH_OPTIONS[name]
    if text and not DIRECTIVE_VALUE.fullmatch(text):
        return f"{text!r} cannot be written as an #SBATCH value", ""
    if text == "" and kind == "=":
        return f"--{name} needs a value", ""
    if text and not kind:
        return f"--{name} takes no value", f"write `{name}: true`"
    return None
