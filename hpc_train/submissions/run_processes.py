"""The processes of a run, found by their environment, in any session."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from hpc_train.model.run import RunFolder

GRACE_S = 10.0


def processes_of(run: RunFolder) -> tuple[int, ...]:
    """Return the ids of the live processes with this run's HPCTRAIN_RUN."""
    mark = f"HPCTRAIN_RUN={run.path.absolute()}".encode()
    return tuple(pid for pid in _pids() if mark in _environment(pid))


def terminate(run: RunFolder, grace_s: float = GRACE_S) -> None:
    """Terminate the job script, which terminates the launcher; kill the remaining processes."""
    script = _script_of(run)
    for pid in processes_of(run) if script is None else (script,):
        _signal(pid, signal.SIGTERM)
    _await_end(run, grace_s)
    kill(run)


def kill(run: RunFolder) -> None:
    """Kill every process of a run; a remaining rank would disturb the next measurement."""
    for pid in processes_of(run):
        _signal(pid, signal.SIGKILL)
    _await_end(run, GRACE_S)


def _await_end(run: RunFolder, within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while processes_of(run) and time.monotonic() < deadline:
        time.sleep(0.05)


def _script_of(run: RunFolder) -> int | None:
    """Return the process that leads the run's session: the job script."""
    leaders = [pid for pid in processes_of(run) if _is_script(pid, run)]
    return min(leaders, default=None)


def _is_script(pid: int, run: RunFolder) -> bool:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return str(run.script.absolute()).encode() in arguments


def _pids() -> tuple[int, ...]:
    return tuple(int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
