"""Runs, and the starts of a run, as rows of a table or of JSON."""

import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.expected_runs import MISSING, latest_attempts
from hpc_train.runs.nodes import recorded_nodes
from hpc_train.runs.run import JobStart, JobState, Run, RunName
from hpc_train.sites.batch_system import find_batch_system

HEADS = ("run", "state", "job", "nodes", "time", "problem")


def counts(runs: Sequence[Run], missing: Sequence[str] = ()) -> str:
    """Return `2 COMPLETED, 1 FAILED`; the last attempt of a run counts."""
    old = earlier(runs)
    last = [run.state.value for run in runs if run.folder.run_id not in old]
    number = Counter(last + [MISSING] * len(missing))
    return ", ".join(f"{count} {state}" for state, count in sorted(number.items())) or "no runs"


def rows(
    runs: Sequence[Run], missing: Sequence[str] = (), causes: Mapping[str, str] | None = None
) -> Sequence[tuple[str, ...]]:
    """Return a row for each run, including requested runs without a folder.

    `causes` are the causes of failures by run id.
    """
    old = earlier(runs)
    present = [
        (
            run.folder.run_id,
            run.state.value,
            _job(run),
            _nodes(run),
            _seconds(run),
            "retried: " * (run.folder.run_id in old) + explained(run, causes or {}),
        )
        for run in runs
    ]
    return present + [
        (name, MISSING, "", "", "", "never submitted, or removed") for name in missing
    ]


def earlier(runs: Sequence[Run]) -> frozenset[str]:
    """Return the runs of a study that were retried."""
    last = {run.folder.run_id for run in latest_attempts(runs).values()}
    return frozenset(
        name for run in runs if RunName.parse(name := run.folder.run_id) and name not in last
    )


def row(run: Run, causes: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a run's row of `status --json`."""
    manifest, times, report = run.manifest, run.status, run.job_report
    expected = run.state is JobState.PENDING and report is not None
    return {
        "run": run.folder.run_id,
        "folder": str(run.folder.path),
        "state": run.state.value,
        "problem": run.problem,
        "cause": (causes or {}).get(run.folder.run_id, ""),
        "reason": report.reason if report else "",
        "expected_start": report.start if report and expected else None,
        "job": _job(run),
        "nodes": _nodes(run),
        "axes": manifest.axes if manifest else None,
        "repetition": manifest.repetition if manifest else None,
        "attempt": manifest.attempt if manifest else None,
        "started": times.started if times else None,
        "ended": times.ended if times else None,
        "exit_code": times.exit_code if times else None,
        "restart_count": times.restart_count if times else None,
        # Where and when a job ran before it was requeued, and how its script ended.
        "earlier_start": {
            "nodes": run.earlier.nodes or run.earlier.host,
            "started": run.earlier.started,
            "ended": run.earlier.ended,
            "exit_code": run.earlier.exit_code,
            "restart_count": run.earlier.restart_count,
        }
        if run.earlier
        else None,
        "restarts": json_restarts(run.starts),
    }


def explained(run: Run, causes: Mapping[str, str]) -> str:
    """Return the problem of a run, its cause (the first line of the diagnosis), its restarts."""
    parts = (why(run), causes.get(run.folder.run_id, ""), restarted(run.starts))
    return "; ".join(filter(None, parts))


def why(run: Run) -> str:
    """Return the problem of a run or, if it is pending, the reason and the expected start."""
    report = run.job_report
    if run.problem or report is None or report.state is not run.state:
        return run.problem
    if run.state is JobState.PENDING and report.start is not None:
        start = datetime.fromtimestamp(report.start).strftime("%Y-%m-%d %H:%M")
        return "; ".join(filter(None, (report.reason, f"expected to start at {start}")))
    return report.reason


def _job(run: Run) -> str:
    submission = run.submission
    if (
        submission is None
        or find_batch_system(submission.executor).this_machine
        or not submission.answered
    ):
        return ""
    return submission.native_id


def _nodes(run: Run) -> str:
    """Return the nodes that the run recorded: a nested run uses a subset of Slurm's nodes."""
    return "" if run.state is JobState.PENDING else recorded_nodes(run)


def _seconds(run: Run) -> str:
    times = run.status
    if times is None or run.state is JobState.PENDING:
        return "--"
    if run.state.active and times.ended is not None:
        # The job was requeued, and these are the times of its earlier attempt.
        return "--"
    if times.ended is not None:
        return f"{times.ended - times.started:.1f} s"
    return f"{time.time() - times.started:.0f} s …" if run.state is JobState.RUNNING else "--"


# The starts of a job that was queued again.

RESTART_HEADS = ("start", "nodes", "time", "waited", "saved step", "steps lost", "end")
# A shell adds it to the number of the signal that ended a program (POSIX, 2.8.2).
_SIGNALLED = 128
_SENT = {
    "SIGTERM": ", as Slurm sends it when it preempts or requeues a job",
    "SIGUSR1": ", with which the job asks ranks to stop, before they handled it",
}


def restarted(starts: Sequence[JobStart]) -> str:
    """Return `restarted 2 times (last: exit code 75, ...), 14 steps lost`; empty without one."""
    if not starts:
        return ""
    count = max(start.restart for start in starts)
    again = [start for start in starts if start.restart < count or start.requeued]
    if not again:
        return ""
    often = "restarted once" if len(again) == 1 else f"restarted {len(again)} times"
    known = [start.steps_lost for start in again if start.steps_lost is not None]
    least = "at least " if len(known) < len(again) else ""
    lost = f"{least}{sum(known)} steps lost" if known else "steps lost unknown"
    return f"{often} ({end_of(again[-1])}), {lost}"


def restart_rows(starts: Sequence[JobStart]) -> list[tuple[str, ...]]:
    """Return a row for each start that ended."""
    return [
        (
            str(start.restart),
            start.nodes,
            "--" if start.ended is None else f"{start.ended - start.started:.1f} s",
            "--" if waited is None else f"{waited:.1f} s",
            str(start.step),
            "--" if start.steps_lost is None else str(start.steps_lost),
            end_of(start),
        )
        for start in starts
        for waited in (waited_s(starts, start),)
    ]


def json_restarts(starts: Sequence[JobStart]) -> list[dict[str, Any]]:
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
    saved = "checkpoint saved on request" if start.saved_on_request else ""
    if start.ended is None or start.exit_code is None:
        reason = "no end recorded: node lost, or script killed"
    elif start.preempted:
        reason = "preempted" + f", {saved}" * bool(saved)
    elif start.by_slurm:
        reason = "ended by Slurm: preempted, requeued or cancelled"
    elif start.exit_code == RESUBMIT:
        reason = saved or "exit code 75, without a checkpoint"
    else:
        reason = f"exit code {start.exit_code}{signal_of(start.exit_code)}"
    lost = "" if start.damaged is None else f"; checkpoint of step {start.damaged} not loaded"
    return reason + lost


def signal_of(code: int) -> str:
    """Return ` (SIGKILL)` of an exit code above 128; empty if it is that of no signal."""
    try:
        name = signal.Signals(code - _SIGNALLED).name
    except ValueError:
        return ""
    return f" ({name}{_SENT.get(name, '')})"
