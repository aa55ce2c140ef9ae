"""The ends that the hosts of a job printed -> status.json of its run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hpc_train.json_files import to_json, write_file
from hpc_train.model.run import JobStatus, RunFolder

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
        key=lambda one: (one.failure is None, _failed_at(one)),
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


def _failed_at(status: JobStatus) -> float:
    time = status.failure.time if status.failure else None
    return time or status.ended or status.started


def _printed(run: RunFolder) -> Iterator[JobStatus]:
    """Yield the last end that each host printed."""
    path = run.logs / "job.out"
    if not path.is_file():
        return
    with path.open("rb") as stream:
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
