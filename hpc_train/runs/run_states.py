"""States of runs: from their files, and one query of each executor; followed, or cancelled."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from hpc_train.base.errors import StoreError
from hpc_train.base.files import is_own, is_there
from hpc_train.base.registry import load
from hpc_train.base.value import Value
from hpc_train.runs.executor import Executor
from hpc_train.runs.expected_runs import missing_runs
from hpc_train.runs.json_files import read_json, read_submission
from hpc_train.runs.nodes import NodeFault, bad_nodes, node_faults
from hpc_train.runs.run import JobReport, JobState, JobStatus, Run, RunFolder, Submission
from hpc_train.runs.run_folders import find, homes, is_run, read_run, run_folders
from hpc_train.runs.run_state import has_ended, is_settled, never_submitted, run_of
from hpc_train.runs.submission_file import mark, read
from hpc_train.runs.submission_file import write as write_submission
from hpc_train.sites.batch_system import find_batch_system


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


def read_runs(path: Path, known: Mapping[RunFolder, Run] | None = None) -> list[Run]:
    """Read the files of the runs below a folder, or of a run folder.

    Runs in `known` with a final state are not read again, nor are known manifests, which never
    change.
    """
    folders = (RunFolder(path=path),) if is_run(path) else run_folders(path)
    previous = known or {}
    return [_read(run, previous.get(run)) for run in folders]


def _read(run: RunFolder, known: Run | None) -> Run:
    if known is None or known.problem:
        return read_run(run)
    return known if is_settled(known.status, known.submission) else _read_again(known)


def _read_again(item: Run) -> Run:
    """Read only the files that change; if one is damaged, read all files to report it."""
    run = item.folder
    try:
        submission = read_submission(run.submission) if is_there(run.submission) else None
        status = read_json(run.status, JobStatus) if is_there(run.status) else None
    except StoreError:
        return read_run(run)
    logged = item.logged or is_there(run.logs / "job.out")
    return msgspec.structs.replace(item, submission=submission, status=status, logged=logged)


def query_executors(files: Sequence[Run]) -> Mapping[RunFolder, JobReport]:
    """Query each executor once, for all of its runs without a final state; say so if it is slow."""
    by_executor: dict[str, dict[RunFolder, Submission]] = defaultdict(dict)
    for item in files:
        if item.submission is not None and not is_settled(item.status, item.submission):
            by_executor[item.submission.executor][item.folder] = item.submission
    # A `render`, which queries nothing, does without it.
    from hpc_train.base.processes import notice_if_slow

    reports: dict[RunFolder, JobReport] = {}
    for name, runs in by_executor.items():
        system = find_batch_system(name)
        with notice_if_slow("a host" if system.host_list else system.title):
            reports.update(executor_of(name).query(runs))
    return reports


def combine(files: Sequence[Run], reports: Mapping[RunFolder, JobReport]) -> tuple[Run, ...]:
    """Combine files and answers, and record final states."""
    return tuple(_combine(item, reports.get(item.folder)) for item in files)


def _combine(item: Run, report: JobReport | None) -> Run:
    if item.submission is not None and not is_settled(item.status, item.submission):
        open_end = not has_ended(item.status)
        # It may have written its end between reading and query.
        if report is None or (report.state.finished and open_end):
            item = _read(item.folder, item)
    if report is not None and item.submission is not None:
        updated = _updated(item.submission, report)
        if updated != item.submission and is_own(item.folder.path):
            with suppress(StoreError):
                write_submission(item.folder, updated)
        item = msgspec.structs.replace(item, submission=updated)
    return run_of(item, report)


def _updated(submission: Submission, report: JobReport) -> Submission:
    """Add information that the scheduler removes later: the job id and the final state."""
    if report.job and not submission.answered:
        submission = msgspec.structs.replace(submission, native_id=report.job)
    if report.state.finished and report.job:
        submission = msgspec.structs.replace(submission, state=report.state, reason=report.reason)
    return submission


# Clocks of the nodes and of this machine may differ by so much [s].
_CLOCKS_S = 60.0
_FIRST_S = 2.0
# Minimum ratio of the pause to the duration of reading.
_REST = 4


class RunStates(NamedTuple):
    """The runs of a folder, and the ids of its requested runs without a folder."""

    runs: tuple[Run, ...]
    missing: tuple[str, ...]


def states(root: Path, word: str | None = None) -> dict[Path, RunStates]:
    """Return the states of one run, or of the runs of a job or study, or of all, by folder.

    Raises:
        UnknownNameError: no run, job or study has that name.
    """
    found = runs_of([find(root, word)] if word else list(homes(root)))
    return {path: RunStates(runs, missing_runs(path, runs)) for path, runs in found.items()}


def faults_of_nodes(
    found: Mapping[Path, RunStates],
) -> tuple[dict[str, tuple[NodeFault, ...]], tuple[str, ...]]:
    """Return the remembered faults by node, and the nodes that a retry leaves out."""
    runs = [run for one in found.values() for run in one.runs]
    faults = node_faults(runs, time.time())
    return faults, bad_nodes(faults)


class Watch:
    """Returns the state of runs, with limited queries of the scheduler.

    A scheduler is queried at once or, if the runs were `just_submitted`, after 2 s; then the
    interval doubles, up to that of its site profile. In between, the last answer and the files of
    the runs are used.
    """

    def __init__(
        self, path: Path, *, just_submitted: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._clock = clock
        self._answers: Mapping[RunFolder, JobReport] | None = None
        self._known: Mapping[RunFolder, Run] = {}
        self._read_s = 0.0
        self._started = self._queried = clock()
        self._pause_s = _FIRST_S if just_submitted else 0.0

    def runs(self) -> tuple[Run, ...]:
        """Return the current state of the runs below the path."""
        begun = time.monotonic()
        try:
            return self._read()
        finally:
            self._read_s = time.monotonic() - begun

    def pause_s(self, shortest_s: float) -> float:
        """Return the pause before the next reading, longer for a slow file system."""
        return max(shortest_s, _REST * self._read_s)

    def _read(self) -> tuple[Run, ...]:
        files = read_runs(self._path, self._known)
        self._known = {item.folder: item for item in files}
        longest_s = _poll_s(files)
        if not longest_s:
            return combine(files, query_executors(files))
        now = self._clock()
        if now - self._queried >= min(self._pause_s, longest_s):
            self._answers = query_executors(files)
            self._queried = now
            self._pause_s = max(_FIRST_S, 2 * self._pause_s)
        return combine(files, self._job_reports(files))

    def _job_reports(self, files: Sequence[Run]) -> dict[RunFolder, JobReport]:
        if self._answers is None:
            since = self._started - _CLOCKS_S
            return {
                item.folder: JobReport(
                    state=JobState.PENDING if item.status is None else JobState.RUNNING
                )
                for item in files
                if _may_be_active(item, since)
            }
        return {
            run: msgspec.structs.replace(answer, queried=self._queried)
            for run, answer in self._answers.items()
        }


def _may_be_active(item: Run, since: float) -> bool:
    """Whether the scheduler may still have a job; one that failed just now may be requeued."""
    status = item.status
    ended = status is not None and status.ended is not None
    if status is not None and status.ended is not None and status.exit_code != 0:
        ended = status.ended < since
    return item.submission is not None and item.submission.state is None and not ended


def _poll_s(files: Sequence[Run]) -> float:
    """Return the longest interval of the sites; 0 if only this machine is queried."""
    polls = [
        item.submission.cluster.poll_s
        for item in files
        if item.submission is not None
        and not find_batch_system(item.submission.executor).this_machine
    ]
    return max(polls, default=0.0)


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"


class Cancelled(Value, frozen=True, kw_only=True):
    """The runs that were cancelled, and those whose job id is unknown and that may continue."""

    runs: tuple[Run, ...]
    unknown_jobs: tuple[Run, ...]


def cancel(path: Path, reason: str = "") -> Cancelled:
    """Cancel the runs at a path that are not known to have finished.

    `reason` stands in their records, if it was not the user who asked.

    Raises:
        StoreError: all of them have finished, or one shares its allocation with others.
        SubmitError: the scheduler refuses, or does not report that they ended.
    """
    runs = runs_below(path)
    unknown = [run for run in runs if (run.state is JobState.UNKNOWN and not never_submitted(run))]
    active = [run for run in runs if run.state.active]
    # A run of unknown state can be cancelled by the id of its job.
    active += [
        run
        for run in unknown
        if (one := run.submission)
        and one.answered
        and not find_batch_system(one.executor).this_machine
    ]
    if not active:
        states = ", ".join(sorted({run.state.value for run in runs}))
        why = next((run.problem for run in runs if run.state is JobState.UNKNOWN), "")
        raise StoreError(f"{path.name}: nothing to cancel; {_runs(len(runs))} {states}", why)
    home = active[0].folder.path.parent
    submissions = {run.folder: run.submission for run in active if run.submission}
    if path != home and any(submission.shared for submission in submissions.values()):
        raise StoreError(
            f"{path.name}: it shares its allocation with the other runs of the study",
            f"hpctrain cancel {home.name} ends them all",
        )
    for name in {submission.executor for submission in submissions.values()}:
        selected = {run: s for run, s in submissions.items() if s.executor == name}
        executor_of(name).cancel(home, selected)
        for folder in selected if reason else ():
            done = read(folder)
            if done is not None and done.state is JobState.CANCELLED:
                mark(folder, done, done.state, reason)
    unknown_jobs = tuple(run for run in unknown if run not in active)
    return Cancelled(runs=tuple(active), unknown_jobs=unknown_jobs)
