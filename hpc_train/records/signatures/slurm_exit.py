"""Signatures of exit codes and signals: what srun and the shell say of a task that ended."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_CODES = ("https://slurm.schedmd.com/job_exit_code.html",)
_TASK = r"error: (?P<node>[^\s:]{1,80}): tasks? (?P<tasks>[\d,\[\]-]{1,400}): "
_ENDED = (b": Exited with exit code ",)
_FIRST = "Look for the first error of these tasks, above this line or in their own log files."


def _code(code: str) -> re.Pattern[str]:
    return re.compile(rf"{_TASK}Exited with exit code (?P<code>{code})\b")


SLURM_EXIT = (
    Signature(
        id="exit_killed",
        group="slurm",
        severity="fatal",
        literals=(*_ENDED, b": Killed", b" Killed  ", b"Killed"),
        pattern=re.compile(
            rf"{_TASK}(?:Exited with exit code 137\b|Killed)|line \d{{1,6}}: +\d{{1,9}} Killed  "
            r"|^Killed$"
        ),
        title="A process was killed (SIGKILL, 137)",
        cause="Often the host's memory ran out; else Slurm or a person ended the job.",
        advice="Look for oom_kill, TIME LIMIT or CANCELLED beside it; `sacct -j JOB -o"
        " maxrss,state` and more `--mem`.",
        example="srun: error: n1: tasks 0-3: Exited with exit code 137",
        sources=_CODES,
    ),
    Signature(
        id="exit_segmentation_fault",
        group="slurm",
        severity="fatal",
        literals=(*_ENDED, b"Segmentation fault", b"*** SIGSEGV (@"),
        pattern=re.compile(
            rf"{_TASK}(?:Exited with exit code 139\b|Segmentation fault)"
            r"|line \d{1,6}: +\d{1,9} Segmentation fault|Fatal Python error: Segmentation fault"
            r"|Caught signal 11 \(Segmentation fault|Signal: Segmentation fault \(11\)"
            r"|^Segmentation fault(?: \(core dumped\))?$|\*\*\* SIGSEGV \(@"
        ),
        title="A process crashed in native code (segmentation fault, 139)",
        cause="A library or extension that does not fit the others, or a full stack.",
        advice="PYTHONFAULTHANDLER=1 shows where; rebuild extensions for this PyTorch.",
        example="srun: error: n1: task 3: Segmentation fault (core dumped)",
        sources=_CODES,
    ),
    Signature(
        id="exit_bus_error",
        group="slurm",
        severity="fatal",
        literals=(b"Bus error",),
        pattern=re.compile(
            rf"{_TASK}Bus error|line \d{{1,6}}: +\d{{1,9}} Bus error|Fatal Python error: Bus error"
            r"|Caught signal 7 \(Bus error|Signal: Bus error \(7\)|^Bus error(?: \(core dumped\))?$"
        ),
        title="A process used memory that was not there (bus error, 135)",
        cause="The node's /dev/shm is full, or a file that is mapped into memory was cut.",
        advice="A larger /dev/shm (--shm-size, --ipc=host), fewer workers of the DataLoader; check"
        " the files of the data set and the quota.",
        example="srun: error: n1: task 2: Bus error (core dumped)",
        sources=_CODES,
    ),
    Signature(
        id="exit_aborted",
        group="slurm",
        severity="fatal",
        role="consequence",
        literals=(*_ENDED, b"Aborted  ", b": Aborted", b"Aborted (core"),
        pattern=re.compile(
            rf"{_TASK}(?:Exited with exit code 134\b|Aborted)"
            r"|line \d{1,6}: +\d{1,9} Aborted  |Fatal Python error: Aborted"
            r"|^Aborted \(core dumped\)$"
        ),
        title="A process ended itself (SIGABRT, 134)",
        cause="The watchdog of NCCL, a failed check in C++, or MPI_Abort; after the end of the"
        " training it does no harm.",
        advice=_FIRST,
        example="srun: error: n1: task 7: Exited with exit code 134",
        sources=_CODES,
    ),
    Signature(
        id="exit_terminated",
        group="slurm",
        severity="info",
        role="consequence",
        literals=(*_ENDED, b": Terminated"),
        pattern=re.compile(rf"{_TASK}(?:Exited with exit code 143\b|Terminated)"),
        title="{these_tasks} on {node} were told to end (SIGTERM, 143)",
        cause="Another task failed before, or the job was stopped.",
        advice="Look for the task that ended in another way, and for TIME LIMIT or CANCELLED.",
        example="srun: error: n2: tasks 8-15: Terminated",
        sources=_CODES,
    ),
    Signature(
        id="exit_command_not_found",
        group="slurm",
        severity="fatal",
        literals=(*_ENDED, b": command not found", b"execve(): "),
        pattern=re.compile(
            rf"{_TASK}Exited with exit code 127\b|line \d{{1,6}}: (?P<command>\S{{1,200}}): command"
            r" not found|error: execve\(\): (?P<program>\S{1,200}): No such file"
        ),
        title="A command was not found (127)",
        cause="The environment is not active on the compute node, or the path is wrong there.",
        advice="Load modules and activate the environment inside the job script; use full paths.",
        example="srun: error: n1: tasks 0-7: Exited with exit code 127",
        sources=_CODES,
    ),
    Signature(
        id="exit_not_executable",
        group="slurm",
        severity="fatal",
        literals=(*_ENDED, b": Permission denied"),
        pattern=re.compile(
            rf"{_TASK}Exited with exit code 126\b|line \d{{1,6}}: (?P<command>\S{{1,200}}):"
            r" Permission denied|error: execve\(\): (?P<program>\S{1,200}): Permission denied"
        ),
        title="A command could not be executed (126)",
        cause="The file is not executable, or its file system is mounted `noexec`.",
        advice="`chmod +x`, or name the interpreter (`bash script.sh`).",
        example="srun: error: n1: task 0: Exited with exit code 126",
        sources=_CODES,
    ),
    Signature(
        id="exit_usage",
        group="slurm",
        severity="fatal",
        role="consequence",
        literals=_ENDED,
        pattern=_code("2"),
        title="{these_tasks} on {node} ended with 2: mostly wrong arguments",
        cause="The program does not know an option, or a file that it needs is missing.",
        advice="Look for `usage:` and `error:` in the output of the tasks.",
        example="srun: error: n1: tasks 0-7: Exited with exit code 2",
        sources=_CODES,
    ),
    Signature(
        id="exit_error",
        group="slurm",
        severity="fatal",
        role="consequence",
        literals=_ENDED,
        pattern=_code(r"\d{1,3}"),
        title="{these_tasks} on {node} ended with exit code {code}",
        cause="The program failed: 1 is an exception in Python, 128 + N a signal.",
        advice=_FIRST,
        example="srun: error: n1: task 0: Exited with exit code 1",
        sources=_CODES,
    ),
    Signature(
        id="exit_signal",
        group="slurm",
        severity="fatal",
        role="consequence",
        literals=(b"srun: error: ",),
        pattern=re.compile(
            _TASK + r"(?P<signal>Floating point exception|Illegal instruction|Hangup"
            r"|Interrupt|User defined signal [12]|Broken pipe|Unknown signal[ \d]{0,6})"
        ),
        title="{these_tasks} on {node} ended by a signal: {signal}",
        cause="`Illegal instruction` is a build for another processor.",
        advice=_FIRST,
        example="srun: error: n1: task 2: Illegal instruction (core dumped)",
        sources=_CODES,
    ),
)
