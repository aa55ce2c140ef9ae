"""The only place that starts processes."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hpc_train.model.value import Value

# What an outer job would leak into ours: ranks, core masks, MPI's wiring (see docs of srun).
_LEAKS = (
    "SLURM_",
    "SBATCH_",
    "SRUN_",
    "PMI",
    "OMPI_",
    "PRTE_",
    "TORCHELASTIC_",
    "PET_",
    "MASTER_",
    "LOCAL_",
    "HPCTRAIN_RUN",
    "HPCTRAIN_TURN",
    "HPCTRAIN_LOG_DIR",
    "HPCTRAIN_FAILURE_FILE",
)
_LEAKED_NAMES = {"RANK", "WORLD_SIZE", "NODE_RANK", "NNODES", "GROUP_RANK", "OMP_NUM_THREADS"}
_KEPT = {"SLURM_CONF", "SLURM_CLUSTERS"}


class Finished(Value, frozen=True, kw_only=True):
    """How a process ended; 127 when the program does not exist."""

    returncode: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    timeout_s: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run a program to its end, in our environment or another; never raises for what it does.

    A program that does not exist is reported as 127, one that takes too long as 124, as the
    shell and timeout(1) do.
    """
    return collect(launch(argv, cwd, environment), timeout_s)


def launch(
    argv: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str] | Finished:
    """Start a program whose output is read by `collect`; one that does not exist has finished."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            argv, stdout=pipe, stderr=pipe, text=True, errors="replace", cwd=cwd, env=environment
        )
    except OSError as failure:
        return Finished(returncode=127, stdout="", stderr=str(failure))


def collect(process: subprocess.Popen[str] | Finished, timeout_s: float) -> Finished:
    """Wait for the end of what was launched; it is killed when that takes too long."""
    if isinstance(process, Finished):
        return process
    with process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            said = f"no answer within {timeout_s} s"
            return Finished(returncode=124, stdout="", stderr=said)
        finally:
            # Also when somebody interrupts us; what has ended is left alone.
            process.kill()
        return Finished(returncode=process.returncode, stdout=stdout, stderr=stderr)


def start(
    argv: Sequence[str],
    output: Path,
    environment: Mapping[str, str],
    keep_open: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, which outlives the terminal.

    Its output is appended to `output`; the file descriptors `keep_open` stay open in it.

    Raises:
        OSError: the program or the output file cannot be opened.
    """
    with output.open("ab") as stream:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=dict(environment),
            pass_fds=tuple(keep_open),
            start_new_session=True,
        )


def ended(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Wait up to `within_s` seconds; whether the process has ended."""
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the traces of an outer job."""
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT or not (name.startswith(_LEAKS) or name in _LEAKED_NAMES)
    }
