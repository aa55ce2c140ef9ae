"""A study that runs -> its report, made again whenever a state or a log has changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.log_selection import Search
from hpc_train.model.report import Report
from hpc_train.model.report_options import ReportOptions
from hpc_train.model.run import Run
from hpc_train.pipeline.report import build_report
from hpc_train.pipeline.report_inputs import ReportInputs, report_inputs
from hpc_train.runs.find_runs import find

# The shortest interval: a page of a large study takes a second to make.
LEAST_S = 2.0
_Seen = tuple[tuple[object, ...], ...]


class Built(NamedTuple):
    """The report of the moment, and what it was made of."""

    inputs: ReportInputs
    report: Report


class ReportWatch:
    """Makes the report of a study again if it has changed; pages reload themselves meanwhile.

    The scheduler is not queried: the runs are given with their states.
    """

    def __init__(
        self, words: Sequence[str], search: Search, options: ReportOptions, every_s: float
    ) -> None:
        self.path = watched_folder(words, search.root)
        self._words, self._search, self._options = words, search, options
        self._reload_s = ceil(max(LEAST_S, every_s))
        self._seen: _Seen | None = None

    def changed(self, runs: tuple[Run, ...]) -> Built | None:
        """Return the report if a state or a log differs from the last call; else None.

        The page of the last report, when all runs have finished, does not reload itself.

        Raises:
            HpcTrainError: as for `report_inputs` and `build_report`.
        """
        seen = tuple(_state_of(run) for run in runs)
        if seen == self._seen:
            return None
        self._seen = seen
        inputs = report_inputs(self._words, self._search, runs=runs)
        report = build_report(inputs, self._options)
        if not all(run.state.finished for run in runs):
            report = msgspec.structs.replace(report, reload_s=self._reload_s)
        return Built(inputs, report)


def final(report: Report) -> Report:
    """Return the report whose page does not reload itself."""
    return msgspec.structs.replace(report, reload_s=None)


def watched_folder(words: Sequence[str], root: Path) -> Path:
    """Return the folder of the study, job or run that is watched.

    Raises:
        StoreError: several arguments. UnknownNameError: there is no such study.
    """
    if len(words) != 1:
        raise StoreError("--watch follows one study, job or run", "hpctrain status lists them")
    return find(root, words[0])


def _state_of(run: Run) -> tuple[object, ...]:
    """Return what a report depends on: the state and, of unfinished runs, the sizes of logs."""
    sizes = () if run.state.finished else tuple(sorted(_sizes(run.folder.logs)))
    return run.folder.run_id, run.state, run.problem, sizes


def _sizes(folder: Path) -> list[tuple[str, int]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [(entry.name, entry.stat().st_size) for entry in entries]
    return []
