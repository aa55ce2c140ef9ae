"""Executor `slurm`: run folders -> sbatch, through submitit; squeue, sacct and scancel after."""

from __future__ import annotations

import datetime
import os
import re
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hpc_train.errors import StoreError, SubmitError
from hpc_train.job_state import is_ending, turn
from hpc_train.model.run import RunFolder
from hpc_train.model.submission import JobReport, JobState, SlurmEndpoint, Submission
from hpc_train.submissions.base import ExecutorOptions
from hpc_train.submissions.slurm.find_submitted_jobs import search
from hpc_train.submissions.slurm.job_arrays import SbatchCall, allocation, batches
from hpc_train.submissions.slurm.job_states import standings
from hpc_train.submissions.slurm.slurm_commands import ask
from hpc_train.submissions.slurm.submit import submit_batches
from hpc_train.submissions.submission_file import mark, status_of

ALLOCATIONS = ".allocations"
# Slurm's default of MaxArraySize (man slurm.conf), if it cannot be queried.
_ARRAY_SIZE = 1001
# Number of queries of the queue after scancel, one every half second.
_LOOKS = 12


class SlurmExecutor:
    """Submits scripts with sbatch; keeps no state and leaves no process."""

    def submit(self, home: Path, runs: Sequence[RunFolder], terms: ExecutorOptions) -> None:
        """Submit a job or array for each point, or one allocation; see `Executor.submit`."""
        todo = _batches(home, runs, terms)
        jobs = 1 if terms.allocation else len(runs)
        most = terms.limits.max_submit_jobs
        if most is not None and jobs > most:
            raise SubmitError(
                f"{jobs} jobs, but the site allows {most} in the queue at once",
                "fewer repetitions or points, or placement: nested, which is one job",
            )
        submit_batches(todo, terms)

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """Query each cluster once; see `Executor.query`."""
        by_cluster: dict[SlurmEndpoint, dict[RunFolder, Submission]] = defaultdict(dict)
        for run, submission in runs.items():
            by_cluster[submission.cluster][run] = submission
        found: dict[RunFolder, JobReport] = {}
        for cluster, mine in by_cluster.items():
            found.update(_ask(cluster, mine))
        return found

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """Cancel all with one scancel for each cluster; see `Executor.cancel`."""
        by_cluster: dict[SlurmEndpoint, set[str]] = defaultdict(set)
        for run, submission in runs.items():
            if not submission.answered:
                raise SubmitError(
                    f"{run.run_id}: its job id is not known yet", "try again in a minute"
                )
            by_cluster[submission.cluster].add(submission.native_id)
        for cluster, jobs in by_cluster.items():
            _scancel(cluster, sorted(jobs))
            _await_end(cluster, jobs)
        for run, submission in runs.items():
            mark(run, submission, JobState.CANCELLED, "cancelled by the user")


def _batches(
    home: Path, runs: Sequence[RunFolder], terms: ExecutorOptions
) -> tuple[SbatchCall, ...]:
    if terms.allocation is None:
        return batches(runs, _array_size(terms) if len(runs) > 1 else 0)
    now = datetime.datetime.now(datetime.timezone.utc)
    script = home / ALLOCATIONS / f"{now:%Y%m%d-%H%M%S}-{os.getpid()}.sbatch"
    try:
        script.parent.mkdir(exist_ok=True)
        script.write_text(terms.allocation.text, encoding="utf-8")
    except OSError as failure:
        raise StoreError(f"{script}: {failure.strerror}") from None
    return (allocation(home, runs, script, terms.allocation.text),)


def _array_size(terms: ExecutorOptions) -> int:
    """Return the smaller of the limits of Slurm and the profile."""
    config = ask(terms.cluster, "scontrol", "show", "config")
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", config.stdout, re.MULTILINE)
    size = int(match[1]) if match else _ARRAY_SIZE
    most = terms.limits.max_array_size
    return size if most is None else min(size, most)


def _ask(
    cluster: SlurmEndpoint, runs: Mapping[RunFolder, Submission]
) -> dict[RunFolder, JobReport]:
    found = search(cluster, {run: s for run, s in runs.items() if not s.answered})
    known = {run: submission for run, submission in runs.items() if submission.answered}
    if known:
        since = min(submission.submitted for submission in known.values())[:10]
        comments = {s.native_id: s.comment for s in known.values()}
        jobs = standings(cluster, comments, since)
        found.update({run: jobs[submission.native_id] for run, submission in known.items()})
    turns = {run for run, submission in runs.items() if submission.shared}
    for run in turns & found.keys():
        standing = turn(status_of(run), run.cut_off.exists(), found[run])
        if standing is None:
            del found[run]
        else:
            found[run] = standing
    return found


def _scancel(cluster: SlurmEndpoint, jobs: Sequence[str]) -> None:
    done = ask(cluster, "scancel", *jobs)
    # A job that has just ended is not an error.
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    serious = [line for line in errors if "Invalid job id" not in line]
    if done.returncode != 0 and (serious or not errors):
        said = "; ".join(serious) or f"exit code {done.returncode}"
        hint = "only their owner may cancel them" if "denied" in said else "try again"
        raise SubmitError(f"scancel: {said.removeprefix('scancel: error: ')}", hint)


def _await_end(cluster: SlurmEndpoint, jobs: Collection[str]) -> None:
    """Wait until the queue shows that the jobs have ended; scancel returns earlier."""
    today = datetime.date.today().isoformat()
    for _ in range(_LOOKS):
        found = standings(cluster, dict.fromkeys(jobs, ""), today)
        there = [job for job, one in found.items() if not _has_left(one)]
        if not there:
            return
        time.sleep(0.5)
    silent = next((one.reason for one in found.values() if one.state is JobState.UNKNOWN), "")
    said = silent or "still in the queue"
    raise SubmitError(f"scancel: {', '.join(sorted(there))}: {said}", "try again")


def _has_left(standing: JobReport) -> bool:
    """Whether a job has ended or is ending; False if its state is unknown."""
    return standing.state.finished or is_ending(standing.reason)
