"""Runs of a region -> their states, ends and logs, with one list of jobs."""

import datetime
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.errors import StoreError
from hpc_train.base.files import (
    files_in,
    is_own,
    is_regular,
    open_regular,
    open_to_append,
    read_regular,
    write_atomic,
)
from hpc_train.base.values import Value
from hpc_train.runs.json_files import exclusive, to_json, write_file
from hpc_train.runs.run import JobReport, JobState, JobStatus, RunFolder, Submission
from hpc_train.sagemaker.aws_client import client, code_of
from hpc_train.sagemaker.training_job import PREFIX

# The most that the service returns; ListTrainingJobs allows two calls a second.
_PAGE = 100
_MOST_PAGES = 100
# Clocks differ, and a request is recorded before it is sent.
_EARLIER = datetime.timedelta(minutes=5)
# boto3 may still be sending the request again.
_WITHIN_S = 300.0


def job_reports(region: str, runs: Mapping[RunFolder, Submission]) -> dict[RunFolder, JobReport]:
    """Return the states of runs; logs and status.json of those that ended are written.

    Raises:
        BotoCoreError, ClientError: AWS does not answer, or refuses.
    """
    names = {name_of(submission) for submission in runs.values()}
    since = min(datetime.datetime.fromisoformat(one.submitted) for one in runs.values())
    listed = _listed(client("sagemaker", region), names, since - _EARLIER)
    return {
        run: _report(region, run, submission, listed.get(name_of(submission)))
        for run, submission in runs.items()
    }


def _listed(service: Any, names: set[str], since: datetime.datetime) -> dict[str, dict[str, Any]]:
    """List jobs, the newest first, until all names were found."""
    only = next(iter(names)) if len(names) == 1 else PREFIX
    request = {
        "MaxResults": _PAGE,
        "NameContains": only,
        "CreationTimeAfter": since,
        "SortBy": "CreationTime",
        "SortOrder": "Descending",
    }
    found: dict[str, dict[str, Any]] = {}
    for _ in range(_MOST_PAGES):
        page = service.list_training_jobs(**request)
        jobs = page["TrainingJobSummaries"]
        found.update({job["TrainingJobName"]: job for job in jobs})
        if not page.get("NextToken") or names <= found.keys():
            break
        request["NextToken"] = page["NextToken"]
    return found


def _report(
    region: str, run: RunFolder, submission: Submission, listed: dict[str, Any] | None
) -> JobReport:
    """Return the state of a job; of one that has ended, after its logs and its end were written.

    Without `job`, the state is not recorded, and the next query asks again.
    """
    if listed is None:
        return _not_listed(submission)
    state, reason = state_of(listed)
    if not state.finished:
        return JobReport(state=state, reason=reason, job=submission.native_id)
    name, service = name_of(submission), client("sagemaker", region)
    described: dict[str, Any] = service.describe_training_job(TrainingJobName=name)
    state, reason = state_of(described)
    try:
        if not is_own(run.path):
            raise StoreError(f"{run.path} belongs to another user")
        fetch(client("logs", region), name, run)
        complete = write_status(run, described, time.time())
    except (OSError, StoreError) as failure:
        message = f"its logs cannot be written: {getattr(failure, 'message', failure)}"
        return JobReport(state=state, reason="; ".join(filter(None, (reason, message))))
    return JobReport(state=state, reason=reason, job=submission.native_id if complete else "")


def _not_listed(submission: Submission) -> JobReport:
    submitted = datetime.datetime.fromisoformat(submission.submitted)
    age_s = (datetime.datetime.now(datetime.timezone.utc) - submitted).total_seconds()
    if age_s < _WITHIN_S:
        reason = f"it was submitted {age_s:.0f} s ago, and SageMaker does not list it yet"
        return JobReport(state=JobState.UNKNOWN, reason=reason)
    reason = "SageMaker has no job of this name: it never received it, or the job was deleted"
    return JobReport(state=JobState.LOST, reason=reason)


_WAITS = {
    "Starting": "it waits for instances",
    "Pending": "it waits for capacity",
    "LaunchingMLInstances": "instances are started",
    "PreparingTrainingStack": "instances are prepared",
    "Downloading": "data are downloaded",
    "DownloadingTrainingImage": "the image is downloaded",
    "Interrupted": "spare capacity was taken away",
    "Restarting": "it starts again, after spare capacity was taken away",
}
_RUNS = ("Training", "Uploading", "Updating")
_LIMITS = {
    "MaxRuntimeExceeded": "the time limit was reached",
    "MaxWaitTimeExceeded": "sagemaker.max_wait was reached",
}
# Failures of AWS, not of the program: another attempt may succeed.
_OF_AWS = ("CapacityError", "InternalServerError", "Internal server error", "InternalServiceError")


def state_of(job: dict[str, Any]) -> tuple[JobState, str]:
    """Return state and reason for a job as ListTrainingJobs or DescribeTrainingJob describe it.

    An unknown word is not final.
    """
    status, secondary = job.get("TrainingJobStatus", ""), job.get("SecondaryStatus", "")
    if status in ("InProgress", "Stopping"):
        return _active(secondary)
    if status == "Completed":
        return JobState.COMPLETED, ""
    if status in ("Failed", "Stopped") and secondary in _LIMITS:
        return JobState.TIMEOUT, _LIMITS[secondary]
    if status == "Failed":
        reason = " ".join(str(job.get("FailureReason", "")).split())
        of_aws = (JobState.NODE_FAIL, f"{reason}; hpctrain retry submits it again")
        own = (JobState.FAILED, reason or "SageMaker gives no reason")
        return of_aws if reason.startswith(_OF_AWS) else own
    if status == "Stopped":
        return JobState.CANCELLED, "stopped, not by hpctrain"
    return JobState.UNKNOWN, f"unknown status of SageMaker: {status} / {secondary}"


def _active(secondary: str) -> tuple[JobState, str]:
    if secondary in _RUNS:
        return JobState.RUNNING, ""
    if secondary in _WAITS:
        return JobState.PENDING, _WAITS[secondary]
    if secondary in ("Stopping", *_LIMITS):
        # AWS ends the job within two minutes; its last lines come after that.
        return JobState.RUNNING, "it is ending"
    return JobState.UNKNOWN, f"unknown status of SageMaker: InProgress / {secondary}"


_LINE = b"hpctrain: status "
# Printed at the end of a script, behind at most the reports of a launcher.
_LAST_BYTES = 1 << 20
_LATE_S = 60.0


def write_status(run: RunFolder, job: dict[str, Any], now: float) -> bool:
    """Write status.json for a job that has ended, as DescribeTrainingJob describes it.

    Returns False if the last lines of a host may still arrive, at the time `now`: CloudWatch has
    them some seconds after the end. Nothing is written then.

    Raises:
        StoreError: it cannot be written.
    """
    hosts = tuple(_printed(run))
    ended = job.get("TrainingEndTime") or job["LastModifiedTime"]
    if len(hosts) < job["ResourceConfig"].get("InstanceCount", 1):
        started = job.get("TrainingStartTime") is not None
        if started and now - ended.timestamp() < _LATE_S:
            return False
    found = status_of_job(hosts, job)
    if found is not None:
        write_file(run.status, to_json(found))
    return True


def status_of_job(hosts: Sequence[JobStatus], job: dict[str, Any]) -> JobStatus | None:
    """Combine the ends of the hosts; the host that failed first has the cause.

    Hosts whose script was killed printed nothing: then times are SageMaker's, and so is the end.
    None if the job never started.
    """
    name, completed = job["TrainingJobName"], job.get("TrainingJobStatus") == "Completed"
    failed = sorted(
        (one for one in hosts if one.exit_code),
        key=lambda one: (
            one.failure is None,
            (one.failure.time if one.failure else None) or one.ended or one.started,
        ),
    )
    if completed and hosts and not failed:
        ends = [one.ended for one in hosts if one.ended is not None]
        first = min(hosts, key=lambda one: one.started)
        return msgspec.structs.replace(first, job=name, ended=max(ends, default=None))
    if failed and not completed:
        started = min(one.started for one in hosts)
        return msgspec.structs.replace(failed[0], job=name, started=started)
    began, ended = job.get("TrainingStartTime"), job.get("TrainingEndTime")
    if began is None:
        return None
    return JobStatus(
        started=began.timestamp(),
        ended=(ended or job["LastModifiedTime"]).timestamp(),
        exit_code=0 if completed else 1,
        job=name,
    )


def _printed(run: RunFolder) -> Iterator[JobStatus]:
    """Yield the last end that each host printed."""
    path = run.logs / "job.out"
    if not is_regular(path):
        return
    with open_regular(path) as stream:
        stream.seek(max(0, path.stat().st_size - _LAST_BYTES))
        lines = stream.read().split(b"\n")
    found: dict[str, JobStatus] = {}
    for line in lines:
        if line.startswith(_LINE):
            try:
                status = msgspec.json.decode(line[len(_LINE) :], type=JobStatus)
            except msgspec.DecodeError:
                continue
            found[status.host] = status
    yield from found.values()


def name_of(submission: Submission) -> str:
    """Return the name of a job; its id is `REGION/NAME`.

    Both are known before the request, so that a job whose answer was lost is found by its name.
    """
    return submission.native_id.partition("/")[2]


GROUP = "/aws/sagemaker/TrainingJobs"
STATE_FILE = ".cloudwatch.json"
_OF_RANK = re.compile(r"^\[(rank|node) (\d{1,7})\] ?")
_HOST = re.compile(r"/(algo-\d{1,5})(?:-|$)")
_JOB_LOG = "job.out"
# A token of GetLogEvents is valid for 24 hours.
_OLD_TOKEN = ("InvalidParameterException", "ResourceNotFoundException")
# Each page has at most 10,000 events.
_MOST_LOG_PAGES = 10_000


class _Stream(Value, frozen=True, kw_only=True):
    """How far a stream was read: the token of the next page, and the number of events."""

    token: str | None = None
    events: int = 0


class _Position(Value, frozen=True, kw_only=True):
    """The streams, in the order in which they were found, and the sizes of the logs [bytes]."""

    streams: dict[str, _Stream] = msgspec.field(default_factory=dict)
    sizes: dict[str, int] = msgspec.field(default_factory=dict)


def fetch(logs: Any, job: str, run: RunFolder) -> None:
    """Append the new lines of a job to the logs of its run; `logs` is a client of CloudWatch.

    A job that has not started has no stream.

    Raises:
        StoreError: the logs cannot be written.
    """
    with exclusive(run.logs / ".cloudwatch.lock"):
        position = _Position()
        with suppress(FileNotFoundError, msgspec.DecodeError):
            position = msgspec.json.decode(read_regular(run.logs / STATE_FILE), type=_Position)
        _cut(run.logs, position)
        for name in dict.fromkeys([*position.streams, *_streams(logs, job)]):
            # A host has a stream of its own for each start.
            host, known = _HOST.search(name), position.streams.get(name, _Stream())
            earlier = [other for other in position.streams if other != name]
            restart = not known.events and any(host and f"/{host[1]}-" in one for one in earlier)
            for events, end in _pages(logs, name, known):
                sizes = _append(run.logs, events, restart=restart)
                restart = restart and not sizes
                position = _Position(
                    streams={**position.streams, name: end}, sizes={**position.sizes, **sizes}
                )
                write_atomic(run.logs / STATE_FILE, msgspec.json.encode(position), flush=False)


def _cut(folder: Path, position: _Position) -> None:
    """Remove what was appended after the position was written."""
    for path in files_in(folder, "*.out"):
        size = position.sizes.get(path.name, 0)
        if path.stat().st_size > size:
            with path.open("r+b") as stream:
                stream.truncate(size)


def _streams(logs: Any, job: str) -> list[str]:
    """Return the names of a job's streams, those of earlier starts first."""
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {"logGroupName": GROUP, "logStreamNamePrefix": f"{job}/"}
    for _ in range(_MOST_LOG_PAGES):
        try:
            page = logs.describe_log_streams(**request)
        except logs.exceptions.ResourceNotFoundException:
            return []
        found += page.get("logStreams", [])
        if not page.get("nextToken"):
            break
        request["nextToken"] = page["nextToken"]
    found.sort(key=lambda one: (one.get("creationTime", 0), len(one["logStreamName"])))
    return [one["logStreamName"] for one in found]


def _pages(logs: Any, name: str, known: _Stream) -> Iterator[tuple[list[str], _Stream]]:
    """Yield new events and the position after them; at the end the token stays the same.

    A page may be empty before the end.
    """
    token, taken, skipped = known.token, known.events, 0
    for _ in range(_MOST_LOG_PAGES):
        after = {"nextToken": token} if token else {}
        try:
            page = logs.get_log_events(
                logGroupName=GROUP, logStreamName=name, startFromHead=True, **after
            )
        except logs.exceptions.ClientError as failure:
            if token is None or code_of(failure) not in _OLD_TOKEN:
                raise
            # Begin again, and leave out the events that the logs have.
            token, skipped = None, taken
            continue
        events = [str(event["message"]) for event in page["events"]]
        new = events[skipped:]
        skipped = max(0, skipped - len(events))
        taken += len(new)
        following = page["nextForwardToken"]
        yield new, _Stream(token=following, events=taken)
        if following == token:
            return
        token = following


def _append(folder: Path, events: Sequence[str], *, restart: bool) -> dict[str, int]:
    """Append each line to its log, after a later start with a marker; return the new sizes."""
    texts: dict[str, list[str]] = defaultdict(list)
    for file, text in _by_file(events):
        texts[file].append(text)
    sizes = {}
    for file, parts in texts.items():
        marker = "\nhpctrain: restart\n" if restart else ""
        with open_to_append(folder / file) as stream:
            stream.write((marker + "".join(parts)).encode("utf-8", "replace"))
            sizes[file] = stream.tell()
    return sizes


def _by_file(events: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name of a log and a line; a progress bar is written with carriage returns."""
    for event in events:
        for line in event.rstrip("\n").split("\n"):
            prefix = _OF_RANK.match(line)
            file = f"{prefix[1]}-{prefix[2]}.out" if prefix else _JOB_LOG
            rest = line[prefix.end() :] if prefix else line
            yield file, rest.replace("#015", "\r") + "\n"
