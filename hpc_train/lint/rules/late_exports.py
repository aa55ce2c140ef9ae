"""The rule on variables that are exported after the launch that needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.control_flow import repeats
from hpc_train.lint.job_script import JobScript
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches

_READ_BY_RANKS = re.compile(
    r"(?:NCCL|RCCL|UCX|FI|TORCH|PYTORCH|OMP|OMPI_MCA|MPICH|GLOO|HF|WANDB|CUDA|HSA)_\w+|"
    r"MASTER_(?:ADDR|PORT)|WORLD_SIZE|PYTHONPATH|PYTHONUNBUFFERED|LD_LIBRARY_PATH"
)
_QUIET = ("", "export", "echo", "date", "wait", "exit", "printf", "fi", "done", "}", "true", "set")
_FUNCTION = re.compile(
    r"^[ \t]{0,40}(?:function[ \t]|[\w-]{1,80}[ \t]{0,9}\([ \t]{0,9}\))", re.MULTILINE
)


@rule(
    "HT417",
    "error",
    "variable set after the launch",
    why="A program has the variables that were set and exported before it started: an export below "
    "srun does not reach the ranks.",
    advice="move the line above the launch",
)
def exported_late(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    launches = list(rank_launches(script))
    if not launches or _FUNCTION.search(script.text):
        return
    if any(repeats(script.around(launch.command)) for launch in launches):
        return
    last = max(launch.command.last_line for launch in launches)
    more = _runs_more(script, last)
    earlier = {found.name for found in script.assignments if found.line <= last}
    used = {name for one in launches for word in one.command.words for name in word.expanded}
    for found in script.assignments:
        if found.inside or found.line <= last or found.name in earlier:
            continue
        needed = found.name in used or (found.exported and not more)
        if needed and _READ_BY_RANKS.fullmatch(found.name):
            message = f"{found.name} is set after the launch in line {launches[-1].line}"
            yield RuleHit(line=found.line, message=message)


def _runs_more(script: JobScript, last: int) -> bool:
    """Whether another program follows, which may need the variables."""
    return any(
        command.program not in _QUIET and not command.inside
        for command in script.commands
        if command.line > last
    )
