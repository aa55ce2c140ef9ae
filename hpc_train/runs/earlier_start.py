"""status.json of a job that waits again -> what ended its earlier start.

Slurm's queue gives such a job the reason BeginTime, as if its user had requested a later start.
Only the accounting knows more, and not every cluster has one.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from hpc_train.job_state import current
from hpc_train.model.job import RESUBMIT
from hpc_train.model.run import JobStatus
from hpc_train.model.submission import JobReport, JobState
from hpc_train.restart_table import signal_of


def earlier_start(status: JobStatus | None, report: JobReport | None) -> JobStatus | None:
    """Return status.json if it is that of a start before the job was requeued."""
    return status if current(status, report) is None else None


def with_earlier_start(report: JobReport | None, earlier: JobStatus | None) -> JobReport | None:
    """Add to the reason of a waiting job what ended its earlier start, unless it is known."""
    if report is None or earlier is None or report.history or report.state is not JobState.PENDING:
        return report
    reason = "; ".join(filter(None, (_end_of(earlier), report.reason)))
    return msgspec.structs.replace(report, reason=reason, history=True)


def _end_of(earlier: JobStatus) -> str:
    nodes = earlier.nodes or earlier.host
    where = f"it ran on {nodes}" if nodes else "it ran"
    if earlier.ended is None or earlier.exit_code is None:
        return (
            f"{where} from {_clock(earlier.started)} and recorded no end: its node was lost, or "
            "its script was killed before it could"
        )
    if earlier.failure is not None and earlier.failure.exit_code == RESUBMIT:
        asked = "its ranks saved a checkpoint and asked to be queued again"
        return f"{where} until {_clock(earlier.ended)}, when {asked}"
    until = f"{where} until {_clock(earlier.ended)}, when its script ended"
    return f"{until} with exit code {earlier.exit_code}{signal_of(earlier.exit_code)}"


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
