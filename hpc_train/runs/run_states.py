"""States of runs: from their files, and one query of each executor; followed, or cancelled."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, cast

from msgspec.structs import replace

from hpc_train.base.decode import load_data
from hpc_train.base.errors import StoreError
from hpc_train.base.files import is_own, is_there, read_regular
from hpc_train.base.registry import load
from hpc_train.base.values import Value
from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.executor import Executor
from hpc_train.runs.expected_runs import missing_runs
from hpc_train.runs.json_files import write_submission
from hpc_train.runs.run import Failure, JobReport, JobState, JobStatus, Run, RunFolder, Submission
from hpc_train.runs.run_folders import find, homes, is_run, read_run, run_folders
from hpc_train.runs.run_table import signal_of
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

    Runs in `known` with a final state are not read again.
    """
    folders = (RunFolder(path=path),) if is_run(path) else run_folders(path)
    previous = known or {}
    return [_read(run, previous.get(run)) for run in folders]


def _read(run: RunFolder, known: Run | None) -> Run:
    settled = known and not known.problem and is_settled(known.status, known.submission)
    return known if known and settled else read_run(run)


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
        updated = item.submission
        # Information that the scheduler removes later: the job id and the final state.
        if report.job and not updated.answered:
            updated = replace(updated, native_id=report.job)
        if report.state.finished and report.job:
            updated = replace(updated, state=report.state, reason=report.reason)
        if updated != item.submission and is_own(item.folder.path):
            with suppress(StoreError):
                write_submission(item.folder, updated)
        item = replace(item, submission=updated)
    return run_of(item, report)


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


class Watch:
    """Returns the state of runs, with limited queries of the scheduler.

    A scheduler is queried at once and after 2 s; then the interval doubles, up to that of its site
    profile. In between, the last answer and the files of the runs are used.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._answers: Mapping[RunFolder, JobReport] = {}
        self._known: Mapping[RunFolder, Run] = {}
        self._read_s = 0.0
        self._queried = clock()
        self._pause_s = 0.0

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
        answers = self._answers.items()
        return combine(
            files, {run: replace(answer, queried=self._queried) for run, answer in answers}
        )


def _poll_s(files: Sequence[Run]) -> float:
    """Return the longest interval of the sites; 0 if only this machine is queried."""
    polls = [
        item.submission.cluster.poll_s
        for item in files
        if item.submission is not None
        and not find_batch_system(item.submission.executor).this_machine
    ]
    return max(polls, default=0.0)


class Cancelled(Value, frozen=True, kw_only=True):
    """The runs that were cancelled, and those whose job id is unknown and that may continue."""

    runs: tuple[Run, ...]
    unknown_jobs: tuple[Run, ...]


def cancel(path: Path) -> Cancelled:
    """Cancel the runs at a path that are not known to have finished.

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
        number = "1 run is" if len(runs) == 1 else f"{len(runs)} runs are"
        raise StoreError(f"{path.name}: nothing to cancel; {number} {states}", why)
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
    unknown_jobs = tuple(run for run in unknown if run not in active)
    return Cancelled(runs=tuple(active), unknown_jobs=unknown_jobs)


# The state of a run and its reason: from the scheduler's answer and the files of the run.

# Largest difference between the clocks of a scheduler and of its nodes.
_SKEW_S = 5.0
# States that contain less information about the end than the exit code in status.json.
_VAGUE = (None, JobState.COMPLETED, JobState.LOST)


class _Word(Value, frozen=True, kw_only=True):
    state: JobState
    meaning: str = ""


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    states: dict[str, _Word]


@cache
def _words() -> dict[str, _Word]:
    return load_data("slurm_states.yaml", _File).states


def is_ending(state_text: str) -> bool:
    """Whether a sentence of `job_state` means that the job is ending."""
    return state_text == _words()["COMPLETING"].meaning


def job_state(word: str) -> tuple[JobState, str]:
    """Return the state for a state of Slurm and, if it contains more information, a sentence.

    An unknown word is not final.
    """
    found = _words().get(word)
    if found is not None:
        return found.state, found.meaning
    name, _, tail = word.strip().partition(" ")
    if name == "CANCELLED" and tail.startswith("by "):
        return JobState.CANCELLED, f"cancelled by user id {tail[3:].strip()}"
    return JobState.UNKNOWN, f"unknown state of Slurm: {word.strip()!r}"


def nested_report(
    status: JobStatus | None, cut_off: bool, allocation: JobReport
) -> JobReport | None:
    """Return the answer for a run in a shared allocation; None if its status.json is sufficient.

    `cut_off`: the allocation ended while the run was running. When a requeued allocation starts, it
    removes the files of runs that did not succeed.
    """
    ended = allocation.state.finished
    name = f"its allocation, job {allocation.job}," if allocation.job else "its allocation"
    if has_ended(status) and allocation.state is not JobState.PENDING:
        reason = f"{name} ended while it was running"
        return replace(allocation, reason=reason) if ended and cut_off else None
    if status is not None:
        return allocation
    if allocation.state is JobState.RUNNING:
        reason = f"it waits for earlier runs in the allocation, job {allocation.job}"
        return replace(allocation, state=JobState.PENDING, reason=reason, start=None)
    if not ended:
        return allocation
    message = f"{name} ended ({allocation.state.value}) before it started"
    reason = ": ".join(filter(None, (message, allocation.reason)))
    state = JobState.FAILED if allocation.state is JobState.FAILED else JobState.LOST
    return replace(allocation, state=state, reason=reason)


def decide(
    report: JobReport | None,
    status: JobStatus | None,
    submission: Submission | None,
    nested_limit_s: float | None = None,
) -> JobState:
    """Decide among the scheduler's answer, status.json and submission.json; the first row wins.

    | fact                                                        | state                      |
    |-------------------------------------------------------------|----------------------------|
    | status.json: ended with exit code 0                         | COMPLETED                  |
    | scheduler: active; it may have requeued the job             | the scheduler's            |
    | the same, but PENDING, and a newer status.json              | RUNNING                    |
    | status.json: ended; the others have no exact state          | FAILED, or TIMEOUT         |
    | submission.json: a recorded final state                     | that state                 |
    | scheduler: not active                                       | the scheduler's            |
    | none of them                                                | UNKNOWN                    |

    None as `report` means no answer. A failure at or after `nested_limit_s`, the time limit of a
    run in a shared allocation, is a TIMEOUT. Without submission.json only status.json and an active
    scheduler decide.
    """
    status = current(status, report)
    if has_ended(status) and status is not None and status.exit_code == 0:
        return JobState.COMPLETED
    if report is not None and report.state.active:
        pending = report.state is JobState.PENDING
        return JobState.RUNNING if pending and status is not None else report.state
    settled = submission.state if submission is not None else None
    recorded = settled or (report.state if report is not None else None)
    # A scheduler that does not respond may still have the job, so UNKNOWN is no vague state.
    if has_ended(status) and recorded in _VAGUE:
        state = JobState.FAILED
    else:
        state = JobState.UNKNOWN if submission is None or recorded is None else recorded
    if state is JobState.FAILED and nested_limit_s is not None and status is not None:
        # It was ended at its own time limit, inside an allocation that continued. The limit counts
        # from shortly before the script records its start.
        ran_s = (status.ended or status.started) - status.started
        if status.ended is not None and status.exit_code != 0 and ran_s >= nested_limit_s - 1:
            return JobState.TIMEOUT
    return state


def has_ended(status: JobStatus | None) -> bool:
    """Whether the job script wrote its end."""
    return status is not None and status.ended is not None


def is_settled(status: JobStatus | None, submission: Submission | None) -> bool:
    """Whether the files contain a final state, so that the scheduler need not be queried."""
    succeeded = has_ended(status) and status is not None and status.exit_code == 0
    return succeeded or (submission is not None and submission.state is not None)


def current(status: JobStatus | None, report: JobReport | None) -> JobStatus | None:
    """Return status.json, or None if it is that of an attempt before the job was requeued."""
    if status is None or report is None or not report.state.active:
        return status
    if report.state is JobState.PENDING:
        stale = report.queried is None or status.started <= report.queried
    else:
        stale = report.start is not None and status.started < report.start - _SKEW_S
    return None if stale else status


_SENTENCES = {
    JobState.LOST: "it was started or queued, and no process of it is left",
    JobState.CANCELLED: "cancelled, not by hpctrain",
    JobState.TIMEOUT: "the time limit was reached",
    JobState.FAILED: "it ended before its script wrote any file",
}


def run_of(files: Run, report: JobReport | None) -> Run:
    """Combine a run's files with the answer of its executor; None means no answer."""
    status = current(files.status, report)
    earlier = files.status if status is None else None
    if report is not None and earlier is not None and report.state is JobState.PENDING:
        # Slurm's queue gives a requeued job the reason BeginTime, as if its user had requested a
        # later start.
        reason = "; ".join(filter(None, (_end_of(earlier), report.reason)))
        report = replace(report, reason=reason)
    plan = files.manifest.plan if files.manifest else None
    limit = plan.time_s if plan and plan.nested else None
    state = decide(report, files.status, files.submission, limit)
    problem = _not_shared(state, files) or _no_space(state, files)
    problem = files.problem or problem or _problem(state, files.submission, status, report)
    return replace(files, state=state, problem=problem, job_report=report, earlier=earlier)


def _not_shared(state: JobState, files: Run) -> str:
    """Detect that Slurm could not open the log of a job, which it reports nowhere."""
    silent = files.status is None and not files.logged
    if state is not JobState.FAILED or files.submission is None or not silent:
        return ""
    return (
        f"{files.folder.logs} contains no output of the run; the results must be on a file system "
        "that all nodes share (--results DIR)"
    )


def _no_space(state: JobState, files: Run) -> str:
    """Detect that the script could not write its end: the temporary file is left, and not whole."""
    if not state.finished or state is JobState.COMPLETED or has_ended(files.status):
        return ""
    fresh = files.folder.status.with_name(f"{files.folder.status.name}.new")
    with suppress(OSError):
        if not read_regular(fresh).endswith(b"\n"):
            return (
                f"its end could not be written to {files.folder.path}: the disk was full or the "
                "quota exceeded; free some space before hpctrain retry"
            )
    return ""


def _problem(
    state: JobState,
    submission: Submission | None,
    status: JobStatus | None,
    report: JobReport | None,
) -> str:
    if state.active or state is JobState.COMPLETED:
        return ""
    if state is JobState.FAILED and status is not None and status.failure is not None:
        bad = status.bad_nodes.replace(",", ", ")
        return f"preflight: checks failed on {bad}" if bad else _first_failure(status.failure)
    if submission is None:
        if status is None:
            return "it was never submitted"
        job = f"job {status.job}" if status.job else f"process {status.pid}"
        return f"submission.json is missing; status.json says {job} on {status.host}"
    reason = submission.reason if submission.state is state else ""
    reason = reason or (report.reason if report else "")
    if not reason and state is JobState.FAILED and status and status.exit_code is not None:
        reason = f"exit code {status.exit_code} before any rank failed; see logs/job.out"
    return reason or _SENTENCES.get(state, "")


def never_submitted(run: Run) -> bool:
    """Whether a submission was killed before it called an executor, so that nothing can be running.

    A run that has started, or whose submission.json is damaged, may be running; so may one of a
    newer version, whose files are not read.
    """
    unknown = run.state is JobState.UNKNOWN and run.status is None and not run.newer
    return unknown and not (is_there(run.folder.submission) or is_there(run.folder.status))


def is_untouched(run: Run) -> bool:
    """Whether a submission was killed after creating the folder and before calling the executor.

    The folder is complete and unused, so it can be submitted unchanged.
    """
    whole = run.manifest is not None and never_submitted(run)
    return whole and not any(run.folder.logs.glob("*"))


def _first_failure(failure: Failure) -> str:
    rank = "a rank" if failure.rank is None else f"rank {failure.rank}"
    lost = ", after it lost another rank" if failure.lost_peer else ""
    asked = ", which requests another start" if failure.exit_code == RESUBMIT else ""
    return f"{rank} on {failure.host}: exit code {failure.exit_code}{asked}{lost}"


def _end_of(earlier: JobStatus) -> str:
    nodes = earlier.nodes or earlier.host
    where = f"it ran on {nodes}" if nodes else "it ran"
    if earlier.ended is None or earlier.exit_code is None:
        return (
            f"{where} from {_clock(earlier.started)} and recorded no end: its node was lost, or "
            "its script was killed"
        )
    if earlier.failure is not None and earlier.failure.exit_code == RESUBMIT:
        asked = "its ranks saved a checkpoint and asked to be queued again"
        return f"{where} until {_clock(earlier.ended)}, when {asked}"
    until = f"{where} until {_clock(earlier.ended)}, when its script ended"
    return f"{until} with exit code {earlier.exit_code}{signal_of(earlier.exit_code)}"


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")
