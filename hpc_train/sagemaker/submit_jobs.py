"""Executor `sagemaker`: run folders -> training jobs, each named before it is requested.

A job is created at most once: its name has random digits, and AWS refuses a second one of it.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import io
import logging
import tarfile
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpc_train.base.errors import StoreError, SubmitError
from hpc_train.base.files import read_regular
from hpc_train.base.values import Value
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.batch_executor import submit_each
from hpc_train.runs.executor import Executor, ExecutorOptions, working_files
from hpc_train.runs.json_files import mark, read_json, write_submission
from hpc_train.runs.run import (
    RESUMES_FROM,
    RETRY_OF,
    JobReport,
    JobState,
    Manifest,
    RunFolder,
    Submission,
)
from hpc_train.sagemaker.aws_client import (
    aws_errors,
    check_credentials,
    client,
    code_of,
    explain,
    region_of,
)
from hpc_train.sagemaker.job_reports import fetch, job_reports, name_of
from hpc_train.sagemaker.training_job import CODE_FILE, MARK, SCRIPT_FILE, section_of, training_job
from hpc_train.sites.profile import SourcedSite

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
    service, files = client("sagemaker", region), client("s3", region)
    uploaded: set[str] = set()

    def submit(job: _Job) -> int:
        try:
            _upload(files, section_of(site).bucket, job, uploaded)
        except aws_errors() as failure:
            raise explain(failure, site, job.where) from None
        _record(job, region, options)
        try:
            service.create_training_job(**job.request)
        except aws_errors() as failure:
            # Its name has 12 random digits: an earlier attempt of this call was accepted.
            if code_of(failure) != _TAKEN:
                error = explain(failure, site, job.where)
                if not (isinstance(error, SubmitError) and error.transient):
                    job.run.submission.unlink(missing_ok=True)
                raise error from None
        return 1

    submit_each(len(jobs), jobs, submit)


def _job(run: RunFolder, site: SourcedSite, results: Path, known: dict[Path, CodeArchive]) -> _Job:
    manifest = read_json(run.manifest, Manifest)
    plan, kept = manifest.plan, str(manifest.provenance.get(RESUMES_FROM, ""))
    folder = Path(plan.workdir or ".").resolve()
    code = known[folder] = known.get(folder) or pack(folder, results)
    digits = uuid.uuid4().hex[:12]
    request = training_job(plan, site, digits, code.digest, kept)
    if RETRY_OF in manifest.provenance and manifest.study is None and not kept:
        text = "%s starts at step 0: without sagemaker.spot, its earlier job kept no checkpoints"
        logging.getLogger(__name__).warning(text, run.run_id)
    where = plan.settings["command"].origin
    return _Job(run=run, mark=digits, request=request, code=code, where=where)


def _upload(files: Any, uri: str, job: _Job, uploaded: set[str]) -> None:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    folder = f"{prefix}/" if prefix else ""
    if job.code.digest not in uploaded:
        key = f"{folder}code/{job.code.digest}/{CODE_FILE}"
        files.put_object(Bucket=bucket, Key=key, Body=job.code.content)
        uploaded.add(job.code.digest)
    for path in (job.run.script, *job.run.beside):
        name = SCRIPT_FILE if path == job.run.script else path.name
        key = f"{folder}{job.name}/input/{name}"
        files.put_object(Bucket=bucket, Key=key, Body=read_regular(path))


def _record(job: _Job, region: str, options: ExecutorOptions) -> None:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    submission = Submission(
        executor="sagemaker",
        native_id=f"{region}/{job.name}",
        submitted=now,
        cluster=options.cluster,
        comment=f"{MARK}={job.mark}",
        command=("CreateTrainingJob", job.name),
        checkpoints=job.request.get("CheckpointConfig", {}).get("S3Uri", ""),
    )
    write_submission(job.run, submission)


MOST_BYTES = 100 << 20


class CodeArchive(Value, frozen=True, kw_only=True):
    """A gzipped tar file; `digest` is the sha256 of its bytes, in hex, shortened."""

    content: bytes
    digest: str


def pack(folder: Path, results: Path) -> CodeArchive:
    """Archive the files of a working folder; links are followed.

    Raises:
        StoreError: a file cannot be read, or the files have more than 100 MiB.
    """
    output = io.BytesIO()
    total = 0
    with (
        gzip.GzipFile(fileobj=output, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name in working_files(folder, results):
            total += _add(archive, folder / name, name) if (folder / name).is_file() else 0
            if total > MOST_BYTES:
                raise StoreError(
                    f"{folder}: the code has more than {MOST_BYTES >> 20} MiB, the last file is "
                    f"{name}",
                    "submit from the folder of the program, and name data in sagemaker.inputs",
                )
    content = output.getvalue()
    return CodeArchive(content=content, digest=hashlib.sha256(content).hexdigest()[:16])


def _add(archive: tarfile.TarFile, path: Path, name: str) -> int:
    """Add a file without owner and time; return its size [bytes]."""
    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as failure:
        raise StoreError(f"{path}: cannot be read: {failure.strerror}", "chmod u+r") from None
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755 if mode & 0o100 else 0o644
    archive.addfile(entry, io.BytesIO(content))
    return len(content)


class SageMakerExecutor(Executor):
    """Submits scripts as training jobs; keeps no state and leaves no process."""

    def refuse(self, site: SourcedSite) -> None:
        """Refuse a host without boto3, a region or credentials; see `Executor.refuse`."""
        region_of(site)
        check_credentials(site)

    def ready(
        self, home: Path, plans: Sequence[LaunchPlan], options: ExecutorOptions
    ) -> ExecutorOptions:
        """Refuse nodes to leave out; see `Executor.ready`."""
        if options.exclude:
            raise SubmitError(
                f"AWS chooses the hosts of a job; {', '.join(options.exclude)} cannot be left out",
                "hpctrain retry without --exclude-failed-nodes",
            )
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
                    fetch(logs, name_of(submission), run)
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
        found[submission.native_id.partition("/")[0]][run] = submission
    return found


def _stop(service: Any, run: RunFolder, submission: Submission) -> None:
    """Stop a job; one that has ended in the meantime keeps its state."""
    region, _, name = submission.native_id.partition("/")
    try:
        service.stop_training_job(TrainingJobName=name)
    except aws_errors() as failure:
        if code_of(failure) != "ValidationException":
            raise
        return
    # What the job has printed so far; it is not queried again.
    with suppress(StoreError):
        fetch(client("logs", region), name, run)
    mark(run, submission, JobState.CANCELLED, "cancelled by the user")
