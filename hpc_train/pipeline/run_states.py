"""States of runs: from their files, and one query of each executor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from hpc_train.errors import StoreError
from hpc_train.job_state import has_ended, is_settled
from hpc_train.json_files import read_json
from hpc_train.model.run import JobStatus, Run, RunFolder
from hpc_train.model.submission import JobReport, Submission
from hpc_train.registry import find_batch_system, load
from hpc_train.regularfile import is_there
from hpc_train.runs.run_folders import RunFiles, is_run, read_run, run_folders
from hpc_train.runs.run_state_and_reason import run_of
from hpc_train.submissions.base import Executor
from hpc_train.submissions.submission_file import write as write_submission


def executor_of(name: str) -> Executor:
    """Return the executor of that name."""
    return cast("type[Executor]", load("executors", name))()


def runs_below(path: Path) -> tuple[Run, ...]:
    """Return the runs of a study's or job's folder, or the run of a run folder."""
    return runs_of([path])[path]


def runs_of(paths: Sequence[Path]) -> dict[Path, tuple[Run, ...]]:
    """Return the runs below each of several folders, with one query of each executor."""
    files = {path: read_runs(path) for path in paths}
    reports = query_executors([item for items in files.values() for item in items])
    return {path: combine(items, reports) for path, items in files.items()}


def read_runs(path: Path, known: Mapping[RunFolder, RunFiles] | None = None) -> list[RunFiles]:
    """Read the files of the runs below a folder, or of a run folder.

    Runs in `known` with a final state are not read again, nor are known manifests, which never
    change.
    """
    folders = (RunFolder(path=path),) if is_run(path) else run_folders(path)
    previous = known or {}
    return [_read(run, previous.get(run)) for run in folders]


def _read(run: RunFolder, known: RunFiles | None) -> RunFiles:
    if known is None or known.problem:
        return read_run(run)
    return known if is_settled(known.status, known.submission) else _read_again(known)


def _read_again(item: RunFiles) -> RunFiles:
    """Read only the files that change; if one is damaged, read all files to report it."""
    run = item.folder
    try:
        submission = read_json(run.submission, Submission) if is_there(run.submission) else None
        status = read_json(run.status, JobStatus) if is_there(run.status) else None
    except StoreError:
        return read_run(run)
    logged = item.logged or is_there(run.logs / "job.out")
    return msgspec.structs.replace(item, submission=submission, status=status, logged=logged)


def query_executors(files: Sequence[RunFiles]) -> Mapping[RunFolder, JobReport]:
    """Query each executor once, for all of its runs without a final state; say so if it is slow."""
    by_executor: dict[str, dict[RunFolder, Submission]] = defaultdict(dict)
    for item in files:
        if item.submission is not None and not is_settled(item.status, item.submission):
            by_executor[item.submission.executor][item.folder] = item.submission
    # A `render`, which queries nothing, does without it.
    from hpc_train.slow_answer import notice_if_slow

    reports: dict[RunFolder, JobReport] = {}
    for name, runs in by_executor.items():
        system = find_batch_system(name)
        with notice_if_slow("a host" if system.host_list else system.title):
            reports.update(executor_of(name).query(runs))
    return reports


def combine(files: Sequence[RunFiles], reports: Mapping[RunFolder, JobReport]) -> tuple[Run, ...]:
    """Combine files and answers, and record final states."""
    return tuple(_combine(item, reports.get(item.folder)) for item in files)


def _combine(item: RunFiles, report: JobReport | None) -> Run:
    if _may_have_ended(item, report):
        item = _read(item.folder, item)
    if report is not None and item.submission is not None:
        updated = _updated(item.submission, report)
        if updated != item.submission:
            # Another user may read, but not write.
            with suppress(StoreError):
                write_submission(item.folder, updated)
        item = msgspec.structs.replace(item, submission=updated)
    return run_of(item, report)


def _may_have_ended(item: RunFiles, report: JobReport | None) -> bool:
    """Whether a run may have written its end between reading and query."""
    if item.submission is None or is_settled(item.status, item.submission):
        return False
    open_end = not has_ended(item.status)
    return report is None or (report.state.finished and open_end)


def _updated(submission: Submission, report: JobReport) -> Submission:
    """Add information that the scheduler removes later: the job id and the final state."""
    if report.job and not submission.answered:
        submission = msgspec.structs.replace(submission, native_id=report.job)
    if report.state.finished and report.job:
        submission = msgspec.structs.replace(submission, state=report.state, reason=report.reason)
    return submission
