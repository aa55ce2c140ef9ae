"""How runs stand: their files, and one question to each executor."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from hpc_train.errors import StoreError
from hpc_train.model.run import Run, RunFolder
from hpc_train.model.submission import JobState, Submission
from hpc_train.registry import load
from hpc_train.runs.state import run_of
from hpc_train.runs.store import RunFiles, read_run, run_folders
from hpc_train.submissions.base import Executor

_ATTEMPT = re.compile(r"^(?P<stem>.+-r\d+)(?:\.(?P<attempt>\d+))?$")


def executor_of(name: str) -> Executor:
    """Return the executor of that name."""
    return cast("type[Executor]", load("executors", name))()


def runs_below(path: Path) -> tuple[Run, ...]:
    """Return the runs of a study's or job's folder, or the one run that a folder is."""
    single = (path / "run.json").exists()
    folders = (RunFolder(path=path),) if single else run_folders(path)
    files = [read_run(folder) for folder in folders]
    alive = _alive(path.parent if single else path, files)
    return tuple(run_of(item, alive.get(item.folder.run_id)) for item in files)


def _alive(home: Path, files: Sequence[RunFiles]) -> Mapping[str, bool | None]:
    """Ask each executor once, for all of its runs."""
    by_executor: dict[str, dict[str, Submission]] = defaultdict(dict)
    for item in files:
        if item.submission is not None:
            by_executor[item.submission.executor][item.folder.run_id] = item.submission
    answers: dict[str, bool | None] = {}
    for name, submissions in by_executor.items():
        answers.update(executor_of(name).alive(home, submissions))
    return answers


def latest_attempts(runs: Sequence[Run]) -> dict[str, tuple[int, Run]]:
    """Return `<stem>-r<repetition>` -> (number, run) of its last attempt."""
    latest: dict[str, tuple[int, Run]] = {}
    for run in runs:
        match = _ATTEMPT.match(run.folder.run_id)
        if match:
            attempt = int(match["attempt"] or 1)
            known, _ = latest.get(match["stem"], (0, run))
            if attempt > known:
                latest[match["stem"]] = (attempt, run)
    return latest


def _runs(count: int) -> str:
    return "1 run is" if count == 1 else f"{count} runs are"


def cancel(path: Path) -> tuple[Run, ...]:
    """Cancel the unfinished runs at a path.

    Raises:
        StoreError: all of them have finished.
    """
    runs = runs_below(path)
    active = [run for run in runs if run.state in (JobState.PENDING, JobState.RUNNING)]
    if not active:
        states = ", ".join(sorted({run.state.value for run in runs}))
        raise StoreError(f"{path.name}: nothing to cancel; {_runs(len(runs))} {states}")
    home = active[0].folder.path.parent
    for name in {run.submission.executor for run in active if run.submission}:
        mine = {r.folder: r.submission for r in active if r.submission}
        executor_of(name).cancel(home, {f: s for f, s in mine.items() if s.executor == name})
    return tuple(active)
