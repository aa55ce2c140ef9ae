"""Executor `slurm`: run folders -> sbatch, through submitit; squeue, sacct and scancel after."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from secrets import token_hex

import msgspec

from hpc_train.base.errors import SiteProfileError, StoreError, SubmitError
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.executor import Executor, ExecutorOptions, check_queue_limit
from hpc_train.runs.run import JobReport, JobState, RunFolder, SlurmEndpoint, Submission
from hpc_train.runs.run_states import is_ending, nested_report
from hpc_train.runs.submission_file import mark, status_of, write
from hpc_train.sites.profile import SourcedSite
from hpc_train.slurm.job_states import MARK, job_reports, search
from hpc_train.slurm.sbatch import Sbatch, SbatchCall, allocation, batches, call_sbatch
from hpc_train.slurm.slurm_commands import call_slurm, notices

ALLOCATIONS = ".allocations"
# Slurm's default of MaxArraySize (man slurm.conf), if it cannot be queried.
_ARRAY_SIZE = 1001
# Number of queries of the queue after scancel, one every half second.
_MAX_QUERIES = 12


class SlurmExecutor(Executor):
    """Submits scripts with sbatch; keeps no state and leaves no process."""

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Refuse more jobs than the site allows in the queue; see `Executor.ready`."""
        hint = "fewer repetitions or points, or placement: nested, which is one job"
        jobs = 1 if options.allocation else len(plans)
        check_queue_limit(jobs, options.limits.max_submit_jobs, hint)
        return options

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Submit a job or array for each point, or one allocation; see `Executor.submit`."""
        submit_batches(_batches(home, runs, options), options)

    def refuse(self, site: SourcedSite) -> None:
        """Refuse a host without sbatch or its slurm.conf; see `Executor.refuse`."""
        check_login_node(site)

    def notices(self, plan: LaunchPlan) -> tuple[str, ...]:
        """Name the variables of this shell that sbatch reads or ignores; see `Executor.notices`."""
        return notices(os.environ, dict(plan.directives))

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """Query each cluster once; see `Executor.query`."""
        by_cluster: dict[SlurmEndpoint, dict[RunFolder, Submission]] = defaultdict(dict)
        for run, submission in runs.items():
            by_cluster[submission.cluster][run] = submission
        found: dict[RunFolder, JobReport] = {}
        for cluster, own_runs in by_cluster.items():
            found.update(_query_cluster(cluster, own_runs))
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
    home: Path, runs: Sequence[RunFolder], options: ExecutorOptions
) -> tuple[SbatchCall, ...]:
    if options.allocation is None:
        return batches(runs, _array_size(options) if len(runs) > 1 else 0)
    now = datetime.datetime.now(datetime.timezone.utc)
    script = home / ALLOCATIONS / f"{now:%Y%m%d-%H%M%S}-{token_hex(4)}.sbatch"
    try:
        script.parent.mkdir(exist_ok=True)
        for name, text in ((script.name, options.allocation.text), *options.allocation.beside):
            (script.parent / name).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise StoreError(f"{script}: {failure.strerror}") from None
    return (allocation(home, runs, script, options.allocation.text),)


def _array_size(options: ExecutorOptions) -> int:
    """Return the smaller of the limits of Slurm and the profile."""
    config = call_slurm(options.cluster, "scontrol", "show", "config")
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", config.stdout, re.MULTILINE)
    size = int(match[1]) if match else _ARRAY_SIZE
    most = options.limits.max_array_size
    return size if most is None else min(size, most)


def _query_cluster(
    cluster: SlurmEndpoint, runs: Mapping[RunFolder, Submission]
) -> dict[RunFolder, JobReport]:
    found = search(cluster, {run: s for run, s in runs.items() if not s.answered})
    known = {run: submission for run, submission in runs.items() if submission.answered}
    if known:
        since = min(submission.submitted for submission in known.values())[:10]
        comments = {s.native_id: s.comment for s in known.values()}
        jobs = job_reports(cluster, comments, since)
        found.update({run: jobs[submission.native_id] for run, submission in known.items()})
    nested = {run for run, submission in runs.items() if submission.shared}
    for run in nested & found.keys():
        report = nested_report(status_of(run), run.cut_off.exists(), found[run])
        if report is None:
            del found[run]
        else:
            found[run] = report
    return found


def _scancel(cluster: SlurmEndpoint, jobs: Sequence[str]) -> None:
    done = call_slurm(cluster, "scancel", *jobs)
    # A job that has just ended is not an error.
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    serious = [line for line in errors if "Invalid job id" not in line]
    if done.returncode != 0 and (serious or not errors):
        message = "; ".join(serious) or f"exit code {done.returncode}"
        hint = "only their owner may cancel them" if "denied" in message else "try again"
        raise SubmitError(f"scancel: {message.removeprefix('scancel: error: ')}", hint)


def _await_end(cluster: SlurmEndpoint, jobs: Collection[str]) -> None:
    """Wait until the queue shows that the jobs have ended; scancel returns earlier."""
    today = datetime.date.today().isoformat()
    for _ in range(_MAX_QUERIES):
        found = job_reports(cluster, dict.fromkeys(jobs, ""), today)
        active = [job for job, one in found.items() if not _has_left(one)]
        if not active:
            return
        time.sleep(0.5)
    no_answer = next((one.reason for one in found.values() if one.state is JobState.UNKNOWN), "")
    message = no_answer or "still in the queue"
    raise SubmitError(f"scancel: {', '.join(sorted(active))}: {message}", "try again")


def _has_left(report: JobReport) -> bool:
    """Whether a job has ended or is ending; False if its state is unknown."""
    return report.state.finished or is_ending(report.reason)


def check_login_node(site: SourcedSite) -> None:
    """Check for sbatch and for its slurm.conf.

    Raises:
        SiteProfileError: one of them does not exist.
    """
    name = site.value.name
    if not shutil.which("sbatch"):
        raise SiteProfileError(
            f"{name}: sbatch is not on PATH, so this is not a login node of a Slurm cluster",
            "on Debian: apt-get install slurm-client; without Slurm: --site local",
        )
    given = os.environ.get("SLURM_CONF")
    if given is not None and not Path(given).is_file():
        raise SiteProfileError(f"SLURM_CONF={given}: there is no such file", "unset SLURM_CONF")
    conf = site.value.slurm_conf
    if given is None and conf is not None and not Path(conf).is_file():
        hint = "hpctrain lab up" if name == "lab" else "ask the site, or set SLURM_CONF"
        raise SiteProfileError(f"{site.origin('slurm_conf')}: {conf} does not exist", hint)


def submit_batches(todo: Sequence[SbatchCall], options: ExecutorOptions) -> None:
    """Submit batches, and write each run's submission.json.

    Raises:
        SubmitError: one was refused; later ones were not submitted.
    """
    submitted = 0
    try:
        for batch in todo:
            _submit(batch, options)
            submitted += len(batch.runs)
    except SubmitError as failure:
        if not submitted:
            raise
        total = sum(len(batch.runs) for batch in todo)
        message = f"{submitted} of {total} runs were submitted, then: {failure.message}"
        hint = failure.hint or "submit again for the rest"
        raise SubmitError(message, hint, transient=failure.transient) from None


def _submit(batch: SbatchCall, options: ExecutorOptions) -> None:
    """Record the request, call sbatch, and record the answer.

    If the process is killed before the answer, the job is found by its comment.
    """
    comment = " ".join(filter(None, (f"{MARK}{uuid.uuid4().hex[:16]}", options.comment)))
    sbatch = Sbatch(batch=batch, executor_options=options, comment=comment)
    submission = Submission(
        executor="slurm",
        native_id="",
        submitted="",
        cluster=options.cluster,
        comment=comment,
        command=sbatch.command,
        shared=batch.shared,
    )
    try:
        job = call_sbatch(sbatch, lambda: _record(batch, submission, ""))
    except SubmitError as failure:
        if not failure.transient:
            for run in batch.runs:
                run.submission.unlink(missing_ok=True)
            if batch.shared:
                batch.script.unlink(missing_ok=True)
        raise
    _record(batch, submission, job)


def _record(batch: SbatchCall, request: Submission, job: str) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    for run in batch.runs:
        native_id = batch.native_id(run, job)
        write(run, msgspec.structs.replace(request, native_id=native_id, submitted=now))
