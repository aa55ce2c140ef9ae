"""The rule on the ranks that remain when one has failed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches, starts_several
from hpc_train.model.finding import Severity
from hpc_train.model.units import slurm_seconds

# A job that is shorter ends before anyone looks at it.
_SHORT_S = 600
_GPUS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
_COLLECTIVES = re.compile(
    r"torch|nccl|rccl|cuda|rocm|nvidia|accelerate|deepspeed|megatron|lightning|MASTER_ADDR",
    re.IGNORECASE,
)
_MPI = re.compile(r"mpi4py|[-_]mpi\.py|\bmpi[-_]", re.IGNORECASE)


@rule(
    "HT202",
    "warning",
    "srun without --kill-on-bad-exit",
    why="When one rank fails, the other ranks hang in their next collective, and srun waits for "
    "them until the time limit. MPI itself ends the ranks of most of its programs.",
    advice="write srun --kill-on-bad-exit=1 (add --wait=60 for ranks that end early with 0)",
)
def no_kill_on_bad_exit(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if script.sets("SLURM_KILL_BAD_EXIT"):
        return
    for launch in rank_launches(script):
        if launch.outer != "srun" or launch.opaque or launch.option("kill-on-bad-exit"):
            continue
        if starts_several(launch, script):
            hangs = _trains(launch, script) and not _is_short(script)
            severity: Severity | None = None if hangs else "info"
            yield RuleHit(line=launch.line, message="no --kill-on-bad-exit", severity=severity)


def _is_short(script: JobScript) -> bool:
    seconds = slurm_seconds(script.asked.value("time") or "")
    return seconds is not None and 0 < seconds < _SHORT_S


def _trains(launch: LaunchCommand, script: JobScript) -> bool:
    """Whether the ranks depend on each other without MPI, as those of PyTorch do."""
    if launch.starter != "python" or _COLLECTIVES.search(script.text) or not script.asked.batch:
        return True
    return _has_gpus(launch, script) and _MPI.search(script.text) is None


def _has_gpus(launch: LaunchCommand, script: JobScript) -> bool:
    asked = script.asked
    words = [asked.value(name) or "" for name in ("gres", "partition", "constraint")]
    words += [option.value or "" for option in launch.options if option.name == "gres"]
    return (
        asked.has(*_GPUS)
        or launch.option(*_GPUS) is not None
        or any("gpu" in word.lower() for word in words)
    )
