"""Executor `sagemaker`: run folders -> training jobs; the lists and logs of AWS after."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpc_train.base.errors import StoreError, SubmitError
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.executor import Executor, ExecutorOptions
from hpc_train.runs.json_files import mark
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.sagemaker.account_check import check_owner
from hpc_train.sagemaker.aws_client import (
    aws_errors,
    check_credentials,
    client,
    code_of,
    explain,
    region_of,
)
from hpc_train.sagemaker.job_reports import JobId, fetch, job_reports
from hpc_train.sagemaker.submit_jobs import submit_jobs
from hpc_train.sites.profile import SourcedSite


class SageMakerExecutor(Executor):
    """Submits scripts as training jobs; keeps no state and leaves no process."""

    def refuse(self, site: SourcedSite) -> None:
        """Refuse a host without boto3, a region or credentials; see `Executor.refuse`."""
        region_of(site)
        check_credentials(site)

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Refuse nodes to leave out, and a role of another account; see `Executor.ready`."""
        if options.exclude:
            raise SubmitError(
                f"AWS chooses the hosts of a job; {', '.join(options.exclude)} cannot be left out",
                "hpctrain retry without --exclude-failed-nodes",
            )
        if options.site is not None:
            check_owner(options.site)
        return options

    def submit(self, home: Path, runs: Sequence[RunFolder], options: ExecutorOptions) -> None:
        """Upload code and scripts, and create a job for each run; see `Executor.submit`."""
        if options.site is None:
            raise AssertionError("a job of SageMaker needs the profile")
        submit_jobs(home, runs, options, options.site)

    def query(self, runs: Mapping[RunFolder, Submission]) -> Mapping[RunFolder, JobReport]:
        """List the jobs of each region once; of those that ended, stage logs and status.json."""
        found: dict[RunFolder, JobReport] = {}
        for region, own in _by_region(runs).items():
            try:
                found.update(job_reports(region, own))
            except aws_errors() as failure:
                reason = explain(failure, None).message
                report = JobReport(state=JobState.UNKNOWN, reason=reason)
                found.update(dict.fromkeys(own, report))
        return found

    def fetch_logs(self, runs: Mapping[RunFolder, Submission]) -> None:
        """Append the new lines of CloudWatch; see `Executor.fetch_logs`."""
        for region, own in _by_region(runs).items():
            try:
                logs = client("logs", region)
                for run, submission in own.items():
                    fetch(logs, JobId.parse(submission.native_id).name, run)
            except aws_errors() as failure:
                raise explain(failure, None) from None

    def cancel(self, home: Path, runs: Mapping[RunFolder, Submission]) -> None:
        """Stop jobs; AWS ends them within two minutes. See `Executor.cancel`."""
        for region, own in _by_region(runs).items():
            try:
                service = client("sagemaker", region)
                for run, submission in own.items():
                    _stop(service, run, submission)
            except aws_errors() as failure:
                raise explain(failure, None) from None


def _by_region(
    runs: Mapping[RunFolder, Submission],
) -> dict[str, dict[RunFolder, Submission]]:
    found: dict[str, dict[RunFolder, Submission]] = defaultdict(dict)
    for run, submission in runs.items():
        found[JobId.parse(submission.native_id).region][run] = submission
    return found


def _stop(service: Any, run: RunFolder, submission: Submission) -> None:
    """Stop a job; one that has ended in the meantime keeps its state."""
    name = JobId.parse(submission.native_id).name
    try:
        service.stop_training_job(TrainingJobName=name)
    except aws_errors() as failure:
        if code_of(failure) != "ValidationException":
            raise
        return
    # What the job has printed so far; it is not queried again.
    with suppress(StoreError):
        fetch(client("logs", JobId.parse(submission.native_id).region), name, run)
    mark(run, submission, JobState.CANCELLED, "cancelled by the user")
