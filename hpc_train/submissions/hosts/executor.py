"""Executor `hosts`: machines of a list by ssh, one run of a queue after the other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hpc_train.errors import SiteProfileError, StoreError, SubmitError
from hpc_train.job_state import has_ended
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RunFolder
from hpc_train.model.site import SourcedSite
from hpc_train.model.submission import JobReport, JobState, Submission
from hpc_train.submissions.base import Executor, ExecutorOptions
from hpc_train.submissions.hosts.checked_hosts import check_hosts
from hpc_train.submissions.hosts.copied_files import files_to_copy
from hpc_train.submissions.hosts.finished_run import record_end
from hpc_train.submissions.hosts.host_states import HostState, report_of
from hpc_train.submissions.hosts.queue_runner import HostQueue
from hpc_train.submissions.hosts.run_on_hosts import poll, stop
from hpc_train.submissions.hosts.started_hosts import StartedHosts, read_hosts
from hpc_train.submissions.local_queue import LocalQueue, is_held, take
from hpc_train.submissions.submission_file import mark, status_of
from hpc_train.submissions.supervisor import new_queue, start_queue, submission_of

_SUPERVISOR = "hpc_train.submissions.hosts.queue_runner"
_ORPHAN = "it failed on a host, and its supervisor has ended; hpctrain cancel ends it on the others"


class HostsExecutor(Executor):
    """Starts one detached supervisor for the runs of a submission."""

    def refuse(self, site: SourcedSite) -> None:
        """Check that ssh is installed; see `Executor.refuse`."""
        if shutil.which("ssh") is None:
            raise SiteProfileError(
                f"{site.origin('scheduler')}: {site.value.name} is reached by ssh, which is not "
                "installed here",
                "on Debian: apt-get install openssh-client",
            )

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Ask all hosts, and measure the files that they get; see `Executor.ready`."""
        for folder in {Path(plan.workdir or ".") for plan in plans if _copies(plan)}:
            files_to_copy(folder, home.parent)
        return msgspec.structs.replace(options, apart=check_hosts(home, plans))

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Start a supervisor that runs `runs` in order; see `Executor.submit`."""
        queue = new_queue(home)
        run_ids = tuple(run.run_id for run in runs)
        content = HostQueue(runs=run_ids, exclude=options.exclude, apart=options.apart)
        submission = submission_of(queue, "hosts", options.cluster)
        start_queue(queue, runs, msgspec.json.encode(content), _SUPERVISOR, submission)

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """Ask each host once, for all runs on it; see `Executor.query`.

        If the supervisor of a run has ended before the run, its end is recorded here.
        """
        active = {run: one for run, one in runs.items() if not has_ended(status_of(run))}
        placed = {run: hosts for run in active if (hosts := read_hosts(run)) is not None}
        states = poll(placed)
        reports = {}
        for run, submission in active.items():
            queue = _queue_of(run, submission)
            if run in placed:
                reports[run] = _started(run, queue, placed[run], states[run])
            else:
                reports[run] = _waiting(run, queue)
        return {run: report for run, report in reports.items() if report is not None}

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """Mark all runs first, so that none of them is started; see `Executor.cancel`."""
        for run, submission in runs.items():
            mark(run, submission, JobState.CANCELLED, "cancelled by the user")
        left: dict[str, str] = {}
        for run in runs:
            hosts = read_hosts(run)
            if hosts is not None and not has_ended(status_of(run)):
                left.update(stop(hosts))
                _record_cancelled(run, _queue_of(run, runs[run]), hosts)
        if left:
            said = "; ".join(f"{name}: {reason}" for name, reason in left.items())
            raise SubmitError(
                f"cancelled, but processes may continue on {', '.join(left)}: {said}",
                "they end at the time limit, or when the supervisor reaches the host again",
            )


def _queue_of(run: RunFolder, submission: Submission) -> LocalQueue:
    return LocalQueue(home=run.path.parent, queue_id=submission.native_id)


def _copies(plan: LaunchPlan) -> bool:
    return plan.host_list is not None and not plan.host_list.shared


def _waiting(run: RunFolder, queue: LocalQueue) -> JobReport:
    """Return the state of a run that has no hosts yet, with what its supervisor said of it."""
    held = is_held(queue.file("lock"))
    if held is None:
        return JobReport(state=JobState.UNKNOWN, reason="its queue cannot be read")
    state = JobState.PENDING if held else JobState.LOST
    return JobReport(state=state, reason=queue.reason(run.run_id))


def _started(
    run: RunFolder, queue: LocalQueue, hosts: StartedHosts, states: Sequence[HostState]
) -> JobReport | None:
    """Return the state of a run on its hosts; None if its files contain its end."""
    report = report_of(states)
    if not all(state.ended for state in states):
        orphan = not is_held(queue.file("lock")) and any(state.failed for state in states)
        return msgspec.structs.replace(report, reason=_ORPHAN) if orphan else report
    try:
        if _record(run, queue, hosts, states):
            return None
    except (StoreError, OSError):
        # Another user may read, but not write.
        return report
    # Its supervisor is about to record the end.
    return msgspec.structs.replace(report, state=JobState.RUNNING, reason="")


def _record(
    run: RunFolder, queue: LocalQueue, hosts: StartedHosts, states: Sequence[HostState]
) -> bool:
    """Record the end of a run, unless its supervisor is there, which does so.

    Raises:
        StoreError, OSError: it cannot be written.
    """
    lock = take(queue.file("lock"), wait=False)
    if lock is None:
        return False
    if not has_ended(status_of(run)):
        record_end(run, hosts, states, report_of(states))
    os.close(lock)
    return True


def _record_cancelled(run: RunFolder, queue: LocalQueue, hosts: StartedHosts) -> None:
    """Fetch the logs of a cancelled run that has no supervisor."""
    states = poll({run: hosts})[run]
    if all(state.ended for state in states):
        with suppress(StoreError, OSError):
            _record(run, queue, hosts, states)
