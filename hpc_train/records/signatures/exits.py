"""Exit code of a process, as launchers state it -> what to tell of it."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.model.value import Value


class Ended(Value, frozen=True, kw_only=True):
    """How a process ended, in words; `how` goes on from the name of the process."""

    how: str
    cause: str
    advice: str


_KILLED = Ended(
    how="was killed (SIGKILL)",
    cause="Mostly the host's memory ran out; else Slurm or a person killed it.",
    advice="`sacct -j JOB -o maxrss,state` and dmesg (`Out of memory`); more `--mem`, fewer workers"
    " of the DataLoader, checkpoints not loaded whole by each rank.",
)
_CRASHED = Ended(
    how="crashed in native code (SIGSEGV)",
    cause="A library or extension that does not fit the others, or a full stack.",
    advice="PYTHONFAULTHANDLER=1 shows where; rebuild extensions for this PyTorch; `ulimit -s`.",
)
_ABORTED = Ended(
    how="aborted itself (SIGABRT)",
    cause="A failed check in C++, the watchdog of NCCL, or a fault of a GPU.",
    advice="Read the last lines of this rank before it; TORCH_SHOW_CPP_STACKTRACES=1.",
)
_BUS = Ended(
    how="used memory that was not there (SIGBUS)",
    cause="The node's /dev/shm is full, or a file that is mapped into memory was cut.",
    advice="A larger /dev/shm (--shm-size, --ipc=host), fewer workers of the DataLoader.",
)
_ILLEGAL = Ended(
    how="met an instruction that its processor does not have (SIGILL)",
    cause="A library was built for another processor.",
    advice="Build it on a compute node, or for a plainer one (-march).",
)
_STOPPED = Ended(
    how="was told to end (SIGTERM)",
    cause="Another rank failed before, or Slurm or a person stopped the job.",
    advice="Look for what Slurm says at this time, and for errors of other nodes.",
)
_ERROR = Ended(
    how="ended with an error (exit code 1)",
    cause="An exception of Python, mostly; where no traceback is above, it is in a file of that"
    " rank, or was never printed.",
    advice="Read the log of this rank (torchrun: --log-dir=DIR --tee=3); `@record` on main() puts"
    " its traceback into torchrun's report.",
)
_USAGE = Ended(
    how="ended with exit code 2",
    cause="Mostly wrong arguments, or a script that is not where it should be.",
    advice="Look for `usage:`, `error:` and `can't open file` in the output of this rank.",
)
_ENDED: Mapping[str, Ended] = {
    "1": _ERROR,
    "2": _USAGE,
    **dict.fromkeys(("-4", "132"), _ILLEGAL),
    **dict.fromkeys(("-6", "134"), _ABORTED),
    **dict.fromkeys(("-7", "135"), _BUS),
    **dict.fromkeys(("-9", "137"), _KILLED),
    **dict.fromkeys(("-11", "139"), _CRASHED),
    **dict.fromkeys(("-15", "143"), _STOPPED),
}
# By a signal that nobody sends to end a job: it may be what the others wait for.
_OWN = (_ILLEGAL, _BUS, _KILLED, _CRASHED)


def ended(exit_code: str) -> Ended:
    """Return what an exit code means."""
    other = Ended(
        how=f"ended with exit code {exit_code}",
        cause="The program chose this code itself (`sys.exit`), or a script around it did.",
        advice=f"Look for {exit_code} in the program and its scripts, and at the end of the log of"
        " this rank.",
    )
    return _ENDED.get(exit_code, other)


def is_crash(exit_code: str) -> bool:
    """Whether a process was killed or crashed without a word."""
    return _ENDED.get(exit_code) in _OWN
