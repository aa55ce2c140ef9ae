"""How runs stand: their files, and one question to each executor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.run import Run, RunFolder, RunName
from hpc_train.model.submission import Standing, Submission
from hpc_train.registry import load
from hpc_train.runs.state import run_of
from hpc_train.runs.store import RunFiles, read_run, read_study, run_folders
from hpc_train.submissions.base import Executor
from hpc_train.submissions.record import write as write_submission


def executor_of(name: str) -> Executor:
    """Return the executor of that name."""
    return cast("type[Executor]", load("executors", name))()


def runs_below(path: Path) -> tuple[Run, ...]:
    """Return the runs of a study's or job's folder, or the one run that a folder is."""
    files = read_runs(path)
    return judge(files, ask(files))


def read_runs(path: Path) -> list[RunFiles]:
    """Read the files of the runs below a folder, or of the one run that it is."""
    single = (path / "run.json").exists()
    return [read_run(run) for run in ((RunFolder(path=path),) if single else run_folders(path))]


def ask(files: Sequence[RunFiles]) -> Mapping[str, Standing]:
    """Ask each executor once, for all of its runs whose end is not known."""
    by_executor: dict[str, dict[str, Submission]] = defaultdict(dict)
    for item in files:
        if item.submission is not None and not _is_settled(item):
            by_executor[item.submission.executor][item.folder.run_id] = item.submission
    answers: dict[str, Standing] = {}
    for name, submissions in by_executor.items():
        home = files[0].folder.path.parent
        answers.update(executor_of(name).query(home, submissions))
    return answers


def _is_settled(item: RunFiles) -> bool:
    status, submission = item.status, item.submission
    well = status is not None and status.ended is not None and status.exit_code == 0
    return well or (submission is not None and submission.state is not None)


def judge(files: Sequence[RunFiles], standings: Mapping[str, Standing]) -> tuple[Run, ...]:
    """Combine what was read with what was answered, and keep what is known for good."""
    return tuple(_judge(item, standings.get(item.folder.run_id)) for item in files)


def _judge(item: RunFiles, standing: Standing | None) -> Run:
    if standing is None and item.submission is not None and not _is_settled(item):
        # It ended between reading and asking.
        item = read_run(item.folder)
    run = run_of(item, standing)
    if standing is None or item.submission is None:
        return run
    learned = _learned(item.submission, standing)
    if learned != item.submission:
        # A colleague may look on, but not write.
        with suppress(StoreError):
            write_submission(item.folder, learned)
    return run


def _learned(submission: Submission, standing: Standing) -> Submission:
    """Add what the scheduler will forget: the job's id, and how it ended."""
    if standing.job and not submission.answered:
        submission = msgspec.structs.replace(submission, native_id=standing.job)
    if standing.state.finished and standing.job:
        submission = msgspec.structs.replace(
            submission, state=standing.state, reason=standing.reason
        )
    return submission


def latest_attempts(runs: Sequence[Run]) -> dict[str, tuple[int, Run]]:
    """Return `<stem>-r<repetition>` -> (number, run) of its last attempt."""
    latest: dict[str, tuple[int, Run]] = {}
    for run in runs:
        name = RunName.parse(run.folder.run_id)
        if name:
            point = f"{name.stem}-r{name.repetition}"
            known, _ = latest.get(point, (0, run))
            if name.attempt > known:
                latest[point] = (name.attempt, run)
    return latest


def missing_runs(home: Path, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the ids of the runs that a study asks for and that have no folder."""
    study = read_study(home)
    if study is None:
        return ()
    there = latest_attempts(runs)
    names = (
        str(RunName(stem=point.stem, repetition=repetition))
        for point in study.points
        for repetition in range(1, study.spec.repetitions + 1)
    )
    return tuple(name for name in names if name not in there)


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"


def cancel(path: Path) -> tuple[Run, ...]:
    """Cancel the unfinished runs at a path.

    Raises:
        StoreError: all of them have finished.
    """
    runs = runs_below(path)
    active = [run for run in runs if run.state.active]
    if not active:
        states = ", ".join(sorted({run.state.value for run in runs}))
        raise StoreError(f"{path.name}: nothing to cancel; {_runs(len(runs))} {states}")
    home = active[0].folder.path.parent
    for name in {run.submission.executor for run in active if run.submission}:
        mine = {r.folder: r.submission for r in active if r.submission}
        executor_of(name).cancel(home, {f: s for f, s in mine.items() if s.executor == name})
    return tuple(active)
