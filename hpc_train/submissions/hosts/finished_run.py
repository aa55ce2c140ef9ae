"""Records the end of a run that has ended on its hosts: logs, status.json, submission.json."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from hpc_train.json_files import write_file
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState
from hpc_train.submissions.hosts.fetched_logs import clear, fetch_all
from hpc_train.submissions.hosts.host_states import HostState, merged
from hpc_train.submissions.hosts.started_hosts import StartedHosts
from hpc_train.submissions.submission_file import mark, read

# Their states need no sentence beside the exit code and the first failure in status.json.
_PLAIN = (JobState.COMPLETED, JobState.FAILED)


def record_end(
    run: RunFolder,
    started: StartedHosts,
    states: Sequence[HostState],
    report: JobReport,
) -> None:
    """Fetch the logs, then write the end; a run with a status.json has all its logs.

    Then the hosts need its files no more.

    Raises:
        StoreError, OSError: something cannot be written.
    """
    fetch_all(run, started)
    submission = read(run)
    if (
        submission is not None
        and submission.state is None
        and (report.state not in _PLAIN or report.reason)
    ):
        mark(run, submission, report.state, report.reason)
    status = merged(states, time.time())
    write_file(run.status, msgspec.json.encode(status) + b"\n")
    clear(run, started)
