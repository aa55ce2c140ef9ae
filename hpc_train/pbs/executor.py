"""Executor `pbs`: run folders -> qsub; qstat and qdel after."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hpc_train.base.errors import SiteProfileError, SubmitError
from hpc_train.pbs.jobs import ENDING, call_pbs, job_reports, message_of, search
from hpc_train.pbs.qsub import quoted, submit
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.executor import Executor, ExecutorOptions, check_queue_limit
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.runs.submission_file import mark, write
from hpc_train.sites.profile import SourcedSite

_CANCELLED = "cancelled by the user"
# Messages about jobs that have ended in the meantime.
_GONE = ("Unknown Job Id", "Job has finished")
# PBS kills what is left of a job 10 s after TERM (kill_delay); one query every half second.
_MAX_QUERIES = 40
# Arguments of one command: Linux allows 2 MiB, and a job id has up to 64 characters.
_AT_ONCE = 5000


class PbsExecutor(Executor):
    """Submits scripts with qsub; keeps no state and leaves no process."""

    def refuse(self, site: SourcedSite) -> None:
        """Refuse a host without qsub; see `Executor.refuse`."""
        if not shutil.which("qsub"):
            hint = "load the module of PBS, or add its bin to PATH"
            raise SiteProfileError(
                f"{site.value.name}: qsub is not on PATH, so this is not a login node of a PBS "
                "cluster",
                hint,
            )

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Refuse too many jobs, nodes to leave out, and a folder's name; see `Executor.ready`."""
        most = options.limits.max_submit_jobs
        check_queue_limit(len(plans), most, "fewer repetitions or points")
        if options.exclude:
            raise SubmitError(
                f"PBS has no option to leave out the nodes {', '.join(options.exclude)}",
                "hpctrain retry without --exclude-failed-nodes; pbsnodes -l lists offline nodes",
            )
        quoted(str(home.absolute()))
        return options

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Submit a job for each run; see `Executor.submit`."""
        for submitted, run in enumerate(runs):
            try:
                submit(run, options)
            except SubmitError as failure:
                if not submitted:
                    raise
                message = f"{submitted} of {len(runs)} runs were submitted, then: {failure.message}"
                hint = failure.hint or "submit again for the rest"
                raise SubmitError(message, hint, transient=failure.transient) from None

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """Query each server once; see `Executor.query`."""
        found = search({run: s for run, s in runs.items() if not s.answered})
        known = {run: s.native_id for run, s in runs.items() if s.answered}
        reports = _reports(known.values())
        for run, job in known.items():
            report = found[run] = reports[job]
            if runs[run].reason == _CANCELLED and report.state in (JobState.FAILED, JobState.LOST):
                found[run] = JobReport(state=JobState.CANCELLED, reason=_CANCELLED, job=job)
        return found

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """Delete the jobs, and wait until they have left; see `Executor.cancel`."""
        for run, submission in runs.items():
            if not submission.answered:
                raise SubmitError(
                    f"{run.run_id}: its job id is not known yet", "try again in a minute"
                )
        jobs = [submission.native_id for submission in runs.values()]
        for part in _parts(jobs):
            _delete(part)
        try:
            _await_end(jobs)
        except SubmitError:
            # Whatever PBS says of their end later: it was asked for.
            for run, submission in runs.items():
                write(run, msgspec.structs.replace(submission, reason=_CANCELLED))
            raise
        for run, submission in runs.items():
            mark(run, submission, JobState.CANCELLED, _CANCELLED)


def _reports(jobs: Collection[str]) -> dict[str, JobReport]:
    """Return the states of jobs, with one query of each server."""
    by_server: dict[str, list[str]] = defaultdict(list)
    for job in dict.fromkeys(jobs):
        by_server[job.partition(".")[2]].append(job)
    found: dict[str, JobReport] = {}
    for own in by_server.values():
        for part in _parts(own):
            found.update(job_reports(part))
    return found


def _parts(jobs: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(jobs), _AT_ONCE):
        yield jobs[start : start + _AT_ONCE]


def _delete(jobs: Sequence[str]) -> None:
    done = call_pbs("qdel", *jobs)
    lines = done.stderr.splitlines()
    serious = [line for line in lines if line.strip() and not any(one in line for one in _GONE)]
    if done.returncode != 0 and (serious or not lines):
        hint = "only their owner may delete them" if "nauthorized" in done.stderr else "try again"
        raise SubmitError(f"qdel: {message_of(done)}", hint)


def _await_end(jobs: Collection[str]) -> None:
    """Wait until the server shows that the jobs have ended; qdel returns earlier."""
    for _ in range(_MAX_QUERIES):
        found = _reports(jobs)
        active = [job for job, one in found.items() if not _has_left(one)]
        if not active:
            return
        time.sleep(0.5)
    silent = next((one.reason for one in found.values() if one.state is JobState.UNKNOWN), "")
    message = silent or "still in the queue"
    hint = f"try again; if its node is lost: qdel -W force {shlex.join(sorted(active)[:5])}"
    raise SubmitError(f"qdel: {', '.join(sorted(active))}: {message}", hint)


def _has_left(report: JobReport) -> bool:
    """Whether a job has ended or is ending; False if its state is unknown."""
    return report.state.finished or report.reason == ENDING
