"""The attempts of each requested run: the last one, and the runs without any."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from hpc_train.errors import StoreError
from hpc_train.model.run import Run, RunName
from hpc_train.runs.run_folders import read_study


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
    """Return the ids of the requested runs of a study without a folder."""
    try:
        study = read_study(home)
    except StoreError as failure:
        logging.getLogger(__name__).warning("%s, so missing runs are unknown", failure.message)
        return ()
    if study is None:
        return ()
    latest = latest_attempts(runs)
    names = (
        str(RunName(stem=point.stem, repetition=repetition))
        for point in study.points
        for repetition in range(1, study.spec.repetitions + 1)
    )
    return tuple(name for name in names if name not in latest)
