"""The starts of a job that was queued again, as a table, as JSON, and in one sentence."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.run import JobStart

HEADS = ("start", "nodes", "time", "waited", "saved step", "steps lost", "end")
# A shell adds it to the number of the signal that ended a program (POSIX, 2.8.2).
_SIGNALLED = 128
_SENT = {
    "SIGTERM": ", as Slurm sends it when it preempts or requeues a job",
    "SIGUSR1": ", with which the job asks ranks to stop, before they listened",
}
_SAVED, _UNSAVED = "checkpoint saved on request", "exit code 75, without a checkpoint"


def restarted(starts: Sequence[JobStart]) -> str:
    """Return `restarted 2 times (last: exit code 75, ...), 14 steps lost`; empty without one."""
    if not starts:
        return ""
    count = max(start.restart for start in starts)
    again = [start for start in starts if start.restart < count or start.requeued]
    if not again:
        return ""
    often = "restarted once" if len(again) == 1 else f"restarted {len(again)} times"
    return f"{often} ({end_of(again[-1])}), {_steps(again)}"


def rows(starts: Sequence[JobStart]) -> list[tuple[str, ...]]:
    """Return a row for each start that ended."""
    return [
        (
            str(start.restart),
            start.nodes,
            "--" if start.ended is None else f"{start.ended - start.started:.1f} s",
            _seconds(waited_s(starts, start)),
            str(start.step),
            "--" if start.steps_lost is None else str(start.steps_lost),
            end_of(start),
        )
        for start in starts
    ]


def json_rows(starts: Sequence[JobStart]) -> list[dict[str, Any]]:
    """Return the rows of `status --json`."""
    return [
        {
            "restart": start.restart,
            "nodes": start.nodes,
            "started": start.started,
            "ended": start.ended,
            "exit_code": start.exit_code,
            "waited_s": waited_s(starts, start),
            "step": start.step,
            "steps_lost": start.steps_lost,
            "reason": end_of(start),
        }
        for start in starts
    ]


def waited_s(starts: Sequence[JobStart], start: JobStart) -> float | None:
    """Return the seconds between the end of the start before and this one, if both are known."""
    before = [one for one in starts if one.restart == start.restart - 1]
    if not before or before[-1].ended is None:
        return None
    return start.started - before[-1].ended


def end_of(start: JobStart) -> str:
    """Return what ended a start, and whether its last checkpoint could not be loaded."""
    lost = "" if start.damaged is None else f"checkpoint of step {start.damaged} not loaded"
    return "; ".join(filter(None, (_reason(start), lost)))


def _reason(start: JobStart) -> str:
    if start.ended is None or start.exit_code is None:
        return "no end recorded: node lost, or script killed"
    if start.by_slurm or start.preempted:
        return _ended_by_slurm(start)
    if start.exit_code == RESUBMIT:
        return _SAVED if start.saved_on_request else _UNSAVED
    return f"exit code {start.exit_code}{signal_of(start.exit_code)}"


def _ended_by_slurm(start: JobStart) -> str:
    if not start.preempted:
        return "ended by Slurm: preempted, requeued or cancelled"
    return f"preempted, {_SAVED}" if start.saved_on_request else "preempted"


def signal_of(code: int) -> str:
    """Return ` (SIGKILL)` of an exit code above 128; empty if it is that of no signal."""
    try:
        name = signal.Signals(code - _SIGNALLED).name
    except ValueError:
        return ""
    return f" ({name}{_SENT.get(name, '')})"


def _steps(starts: Sequence[JobStart]) -> str:
    known = [start.steps_lost for start in starts if start.steps_lost is not None]
    if not known:
        return "steps lost unknown"
    least = "at least " if len(known) < len(starts) else ""
    return f"{least}{sum(known)} steps lost"


def _seconds(value: float | None) -> str:
    return "--" if value is None else f"{value:.1f} s"
