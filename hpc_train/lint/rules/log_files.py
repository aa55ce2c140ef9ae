"""Rules on the log of a job: its folder, and what overwrites it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches

_JOB_ID = re.compile(r"(?<!%)%\d{0,3}[jAJ]")
# `7`, `7-7`, `7%1`
_ONE_ELEMENT = re.compile(r"(\d{1,9})(?:-\1)?(?:[:%]\d{1,9})*")
_SERVERS = ("jupyter", "jupyter-lab", "jupyter-notebook", "jupyterhub-singleuser", "code-server")
_NO_SERVERS = ("echo", "printf", "pip", "conda", "mamba", "module", "which", "pkill", "")


@rule(
    "HT019",
    "warning",
    "log folder created by the job",
    why="Slurm opens the log before the script runs; a mkdir in the script runs too late. Before "
    "Slurm 23.02, the job then fails at once and writes no log; later versions create the folder.",
    advice="create the folder before sbatch, or write the log into an existing folder",
)
def late_log_folder(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    for name in ("output", "error"):
        folder = (asked.value(name) or "").rpartition("/")[0]
        if _JOB_ID.search(folder):
            message = f"{folder} contains the job id, so that it cannot exist before the job"
            yield RuleHit(line=asked.line(name), message=message)
            return
        if not folder or "%" in folder:
            continue
        for command in subject.script.runs("mkdir"):
            if folder in [word.text.rstrip("/").removeprefix("./") for word in command.words]:
                line = asked.line(name)
                yield RuleHit(
                    line=line,
                    message=f"{folder} is created in line {command.line}: too late",
                )
                return


@rule(
    "HT111",
    "warning",
    "elements of a job array write to one log",
    why="Without %a (or %j) in --output, all elements of an array write to one file and overwrite "
    "its contents.",
    advice="write --output=…-%A_%a.out",
)
def array_log(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    for name in ("output", "error"):
        value = asked.value(name) or ""
        single = _ONE_ELEMENT.fullmatch(asked.value("array") or "")
        if asked.has("array") and not single and value and not value.startswith("/dev/"):
            if not any(pattern in value for pattern in ("%a", "%j", "%J")):
                yield RuleHit(line=asked.line(name), message=f"--{name}={value} has no %a")


def _is_notebook(script: JobScript) -> bool:
    """Whether the job is a notebook server: the address and token of an earlier one are stale."""
    served = (
        word.text.rpartition("/")[2]
        for command in (*script.commands, *script.task_commands)
        if command.program not in _NO_SERVERS
        for word in command.words
    )
    return any(name in _SERVERS for name in served) and not any(rank_launches(script))


@rule(
    "HT112",
    "warning",
    "requeue without --open-mode=append",
    why="A requeued job truncates its log: the output of the failed attempt is lost.",
    advice="add #SBATCH --open-mode=append",
)
def requeue_truncates(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    asked = script.asked
    if asked.has("open-mode") or asked.value("output") == "/dev/null" or _is_notebook(script):
        return
    if asked.has("requeue"):
        yield RuleHit(
            line=asked.line("requeue"), message="--requeue erases the log of each attempt"
        )
        return
    for command in (*script.runs("scontrol"), *script.task_commands):
        if asked.batch and [word.text for word in command.words[:2]] == ["scontrol", "requeue"]:
            yield RuleHit(line=command.line, message="the requeued job erases its log")
            return
