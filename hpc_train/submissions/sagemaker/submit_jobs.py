"""Runs -> training jobs; the name of a job is recorded before the request, its answer needs none.

A job is created at most once: its name has random digits, AWS refuses a second job of that name,
and a tag says whose it is.
"""

from __future__ import annotations

import datetime
import logging
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hpc_train.errors import HpcTrainError, SubmitError
from hpc_train.json_files import read_json
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import RESUMES_FROM, RETRY_OF, Manifest, RunFolder
from hpc_train.model.site import SourcedSite
from hpc_train.model.submission import Submission
from hpc_train.model.value import Value
from hpc_train.submissions.base import ExecutorOptions
from hpc_train.submissions.sagemaker.aws_client import client, region_of
from hpc_train.submissions.sagemaker.aws_messages import aws_errors, code_of, explain, message_of
from hpc_train.submissions.sagemaker.code_archive import CodeArchive, pack
from hpc_train.submissions.sagemaker.job_reports import JobId
from hpc_train.submissions.sagemaker.service_limits import check_limits
from hpc_train.submissions.sagemaker.training_job import (
    CODE_FILE,
    MARK,
    SCRIPT_FILE,
    section_of,
    training_job,
)
from hpc_train.submissions.submission_file import write

_TAKEN = "ResourceInUse"


class _Job(Value, frozen=True, kw_only=True):
    """A run, the random digits of its job, its request, and the place of the job file."""

    run: RunFolder
    mark: str
    request: dict[str, Any]
    code: CodeArchive
    where: str

    @property
    def name(self) -> str:
        return str(self.request["TrainingJobName"])


class _Aws(Value, frozen=True, kw_only=True):
    """The clients of a region, and the profile for messages."""

    site: SourcedSite
    region: str
    jobs: Any
    files: Any


def submit_jobs(
    home: Path, runs: Sequence[RunFolder], options: ExecutorOptions, site: SourcedSite
) -> None:
    """Check all requests, then upload and create one job after the other.

    Raises:
        HpcTrainError: one was refused; later ones were not submitted.
    """
    archives: dict[Path, CodeArchive] = {}
    jobs = [_job(run, site, home.parent, archives) for run in runs]
    region = region_of(site)
    aws = _Aws(
        site=site, region=region, jobs=client("sagemaker", region), files=client("s3", region)
    )
    uploaded: set[str] = set()
    for number, job in enumerate(jobs):
        try:
            _submit(aws, job, options, uploaded)
        except HpcTrainError as failure:
            if number:
                failure.message = (
                    f"{number} of {len(jobs)} runs were submitted, then: {failure.message}"
                )
            raise


def _job(run: RunFolder, site: SourcedSite, results: Path, known: dict[Path, CodeArchive]) -> _Job:
    manifest = read_json(run.manifest, Manifest)
    plan, kept = manifest.plan, str(manifest.provenance.get(RESUMES_FROM, ""))
    folder = Path(plan.workdir or ".").resolve()
    code = known[folder] = known.get(folder) or pack(folder, results)
    digits = uuid.uuid4().hex[:12]
    request = training_job(plan, site, digits, code.digest, kept)
    check_limits(request, plan)
    if RETRY_OF in manifest.provenance and manifest.study is None and not kept:
        text = "%s starts anew: without sagemaker.spot, its earlier job kept no checkpoints"
        logging.getLogger(__name__).warning(text, run.run_id)
    return _Job(run=run, mark=digits, request=request, code=code, where=_place(plan))


def _place(plan: LaunchPlan) -> str:
    return plan.settings["command"].origin


def _submit(aws: _Aws, job: _Job, options: ExecutorOptions, uploaded: set[str]) -> None:
    """Upload the files, record the request, and send it."""
    try:
        _upload(aws, job, uploaded)
    except aws_errors() as failure:
        raise explain(failure, aws.site, job.where) from None
    _record(aws, job, options)
    try:
        aws.jobs.create_training_job(**job.request)
    except aws_errors() as failure:
        _refused(aws, job, failure)


def _upload(aws: _Aws, job: _Job, uploaded: set[str]) -> None:
    bucket, _, prefix = section_of(aws.site).bucket.removeprefix("s3://").partition("/")
    folder = f"{prefix}/" if prefix else ""
    if job.code.digest not in uploaded:
        key = f"{folder}code/{job.code.digest}/{CODE_FILE}"
        aws.files.put_object(Bucket=bucket, Key=key, Body=job.code.content)
        uploaded.add(job.code.digest)
    key = f"{folder}{job.name}/input/{SCRIPT_FILE}"
    aws.files.put_object(Bucket=bucket, Key=key, Body=job.run.script.read_bytes())


def _record(aws: _Aws, job: _Job, options: ExecutorOptions) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    submission = Submission(
        executor="sagemaker",
        native_id=str(JobId(region=aws.region, name=job.name)),
        submitted=now,
        cluster=options.cluster,
        comment=f"{MARK}={job.mark}",
        command=("CreateTrainingJob", job.name),
        checkpoints=job.request.get("CheckpointConfig", {}).get("S3Uri", ""),
    )
    write(job.run, submission)


def _refused(aws: _Aws, job: _Job, failure: Exception) -> None:
    """Return if the job exists after all: an earlier attempt of this call was accepted.

    Raises:
        HpcTrainError: refused, and the run was not submitted; or it is unknown whether it was.
    """
    if code_of(failure) == _TAKEN:
        if _is_own(aws, job):
            return
        job.run.submission.unlink(missing_ok=True)
        raise SubmitError(
            f"{job.where}: a training job {job.name} exists already: {message_of(failure)}",
            "submit again, which takes another name",
        )
    error = explain(failure, aws.site, job.where)
    if not (isinstance(error, SubmitError) and error.transient):
        job.run.submission.unlink(missing_ok=True)
    raise error


def _is_own(aws: _Aws, job: _Job) -> bool:
    """Whether the job of this name has the tag of this run."""
    try:
        found = aws.jobs.describe_training_job(TrainingJobName=job.name)
        tags = aws.jobs.list_tags(ResourceArn=found["TrainingJobArn"])["Tags"]
    except aws_errors() as failure:
        raise explain(failure, aws.site, job.where) from None
    return {"Key": MARK, "Value": job.mark} in tags
