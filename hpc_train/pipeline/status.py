"""States of runs, once or by polling: frequent for their files, rare for their scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpc_train.model.run import Run, RunFolder
from hpc_train.model.submission import JobReport, JobState
from hpc_train.pipeline.run_states import combine, query_executors, read_runs, runs_of
from hpc_train.records.slow_ranks import SlowRank, slow_ranks
from hpc_train.registry import find_batch_system
from hpc_train.runs.expected_runs import missing_runs
from hpc_train.runs.find_runs import find, homes
from hpc_train.runs.node_faults import NodeFault, bad_nodes, node_faults
from hpc_train.runs.run_folders import RunFiles, is_run

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


def slow_ranks_of(run: Run) -> tuple[SlowRank, ...]:
    """Return the ranks of a run that take much longer for a step than the others."""
    return slow_ranks(run.folder.logs)


def folder_of(word: str, root: Path) -> Path:
    """Return the folder of a run, job or study, by its name or path.

    Raises:
        UnknownNameError: nothing has that name.
        StoreError: the prefix of several run ids.
    """
    return find(root, word)


def is_run_folder(folder: Path) -> bool:
    """Whether a folder is that of a run, not that of a job or study."""
    return is_run(folder)


def missing_below(folder: Path, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the ids of the requested runs of a study without a folder; none for a job."""
    return missing_runs(folder, tuple(runs))


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
        self._known: Mapping[RunFolder, RunFiles] = {}
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

    def _job_reports(self, files: Sequence[RunFiles]) -> dict[RunFolder, JobReport]:
        if self._answers is None:
            since = self._started - _CLOCKS_S
            return {
                item.folder: _assumed_report(item) for item in files if _may_be_active(item, since)
            }
        return {
            run: msgspec.structs.replace(answer, queried=self._queried)
            for run, answer in self._answers.items()
        }


def _may_be_active(item: RunFiles, since: float) -> bool:
    """Whether the scheduler may still have a job; one that failed just now may be requeued."""
    status = item.status
    ended = status is not None and status.ended is not None
    if status is not None and status.ended is not None and status.exit_code != 0:
        ended = status.ended < since
    return item.submission is not None and item.submission.state is None and not ended


def _assumed_report(item: RunFiles) -> JobReport:
    return JobReport(state=JobState.PENDING if item.status is None else JobState.RUNNING)


def _poll_s(files: Sequence[RunFiles]) -> float:
    """Return the longest interval of the sites; 0 if only this machine is queried."""
    polls = [
        item.submission.cluster.poll_s
        for item in files
        if item.submission is not None
        and not find_batch_system(item.submission.executor).this_machine
    ]
    return max(polls, default=0.0)
