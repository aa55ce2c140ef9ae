"""The only place that starts processes, and reads what system programs answer."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hpc_train.base.values import Value

# Variables of an outer job that must not reach a new job: ranks, core masks, MPI (man srun).
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
    "HPCTRAIN_CHECKPOINTS",
    "HPCTRAIN_STOP_",
)
_LEAKED_NAMES = {"RANK", "WORLD_SIZE", "NODE_RANK", "NNODES", "GROUP_RANK", "OMP_NUM_THREADS"}
# Output in colour, and figures for a notebook: the log of a job is neither.
_OF_A_KERNEL = {"MPLBACKEND", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}
_KEPT = {"SLURM_CONF", "SLURM_CLUSTERS"}


class Finished(Value, frozen=True, kw_only=True):
    """The result of a process; exit code 127 if the program does not exist."""

    returncode: int
    stdout: str
    stderr: str


class Exchanged(NamedTuple):
    """The result of `exchange`."""

    returncode: int
    stdout: bytes
    stderr: str


def run(
    argv: Sequence[str],
    timeout_s: float,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run a program to its end, in this environment or another; never raises an error.

    A program that does not exist is reported as 127, one that takes too long as 124, as the
    shell and timeout(1) do.
    """
    return collect(launch(argv, cwd, environment), timeout_s)


def exchange(argv: Sequence[str], given: bytes, timeout_s: float) -> Exchanged:
    """Run a program with bytes on its stdin, and return the bytes of its stdout.

    Its output goes to files, because a background process of ssh may keep a pipe open. Codes are
    those of `run`.
    """
    # Other commands need not import it.
    from tempfile import TemporaryFile

    # In memory, because it may contain secrets.
    with (
        os.fdopen(os.memfd_create("stdin"), "w+b") as stdin,
        TemporaryFile() as out,
        TemporaryFile() as errors,
    ):
        stdin.write(given)
        stdin.seek(0)
        try:
            process = subprocess.Popen(argv, stdin=stdin, stdout=out, stderr=errors)
        except OSError as failure:
            return Exchanged(127, b"", str(failure))
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return Exchanged(124, b"", f"no answer within {timeout_s:.0f} s")
        finally:
            process.kill()
            process.wait()
        out.seek(0)
        errors.seek(0)
        return Exchanged(code, out.read(), _text(errors.read()))


def launch(
    argv: Sequence[str], cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes] | Finished:
    """Start a program; `collect` reads its output. A missing program gives a finished process."""
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(argv, stdout=pipe, stderr=pipe, cwd=cwd, env=environment)
    except OSError as failure:
        return Finished(returncode=127, stdout="", stderr=str(failure))


def collect(process: subprocess.Popen[bytes] | Finished, timeout_s: float) -> Finished:
    """Wait for the end of a program; it is killed after `timeout_s`."""
    if isinstance(process, Finished):
        return process
    with process:
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            message = f"no answer within {timeout_s} s"
            return Finished(returncode=124, stdout="", stderr=message)
        finally:
            # Also on an interrupt; this has no effect on a process that has ended.
            process.kill()
        return Finished(returncode=process.returncode, stdout=_text(stdout), stderr=_text(stderr))


def _text(output: bytes) -> str:
    return output.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


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
    """Return an environment without the variables of an outer job, or of a notebook's kernel."""
    kernel = "JPY_PARENT_PID" in environment
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT or not (name.startswith(_LEAKS) or name in _LEAKED_NAMES)
        if not (kernel and (name.startswith("JPY_") or name in _OF_A_KERNEL))
    }


def python_command() -> str:
    """Return the interpreter that has hpctrain: `python` if the shell starts the same one."""
    found = shutil.which("python")
    # The interpreters of two environments may be links to one file, so their folders count.
    same = found is not None and Path(found).parent.samefile(Path(sys.executable).parent)
    return "python" if same else sys.executable


# Variables that set options of the commands: SINFO_FORMAT would change the output.
_OPTIONS = ("SQUEUE_", "SACCT_", "SCONTROL_", "SINFO_", "SLURM_TIME_FORMAT")
_PREFIX = re.compile(r"^(\w+: )?(error|fatal): ", re.IGNORECASE)
_LONGEST = 160
ABSENT = "not installed"
_MOST_DIGITS = 15


class Answer(Value, frozen=True, kw_only=True):
    """The output of a program; `problem` is the reason if it cannot be used."""

    text: str
    problem: str = ""


Ask = Callable[..., Answer]


def ask(*argv: str, timeout_s: float = 30.0) -> Answer:
    """Run a program with English messages, without options from environment variables."""
    if shutil.which(argv[0]) is None:
        return Answer(text="", problem=ABSENT)
    conf = os.environ.get("SLURM_CONF")
    if conf and not os.access(conf, os.R_OK):
        # Slurm's commands would retry once a second for a minute.
        return Answer(text="", problem=f"SLURM_CONF={conf} cannot be read")
    return answer_of(run(argv, timeout_s, environment=environment()))


def environment() -> dict[str, str]:
    """Return the environment for programs whose output is read."""
    kept = clean_environment(os.environ)
    plain = {name: value for name, value in kept.items() if not name.startswith(_OPTIONS)}
    return plain | {"LC_ALL": "C"}


def answer_of(done: Finished) -> Answer:
    """Return the output of a program; for a failure, its last line."""
    if done.returncode == 0 and (done.stdout.strip() or "error:" not in done.stderr):
        # `srun --mpi=list` printed to stderr before 22.05.
        return Answer(text=done.stdout or done.stderr)
    if done.returncode == 127 and not done.stdout:
        return Answer(text="", problem=ABSENT)
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return Answer(text="", problem=_PREFIX.sub("", printable(lines[-1]), count=1))


def printable(text: str) -> str:
    """Return the beginning of a text, with `?` for each control character."""
    return "".join(c if c.isprintable() else "?" for c in text.strip())[:_LONGEST]


def whole(text: str | None) -> int | None:
    """Return a whole number of ASCII digits, at most 15; None for any other text."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return None
    return int(text)


NOTICE_S = 10.0


@contextmanager
def notice_if_slow(who: str, limit: str = "") -> Iterator[None]:
    """Say after 10 s, once, that `who` has not answered; `limit` says for how long it may take."""
    text = f"{who} has not answered for {NOTICE_S:.0f} s{limit or '; still waiting'}"
    # Most commands end before they say anything.
    import logging

    notice = threading.Timer(NOTICE_S, logging.getLogger(__name__).warning, (text,))
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()
