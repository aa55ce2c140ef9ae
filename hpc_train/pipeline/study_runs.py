"""A folder of runs -> the expected runs of its study, its runs, and their records."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpc_train.errors import LogParseError, StoreError
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.model.scaling_input import ExpectedStudy
from hpc_train.pipeline.run_records import run_records
from hpc_train.pipeline.run_states import runs_below
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.read_log import Wanted
from hpc_train.runs.expected_runs import expected_study, single_jobs, without_copies
from hpc_train.runs.run_folders import read_study

_log = logging.getLogger(__name__)


class StudyRuns(NamedTuple):
    """A study, its runs that count, and the options for reading their logs."""

    study: ExpectedStudy
    runs: tuple[Run, ...]
    options: Wanted

    def records(self, stats: ParseStats) -> Iterator[Record]:
        """Yield the records of all runs; `stats` is updated.

        A run that cannot be read is recorded there and does not affect the others.

        Raises:
            LogParseError: there is no record, and a run cannot be read.
        """
        errors: list[LogParseError] = []
        empty = True
        for run in self.runs:
            try:
                for record in run_records(run, self.options, stats):
                    empty = False
                    yield record
            except LogParseError as failure:
                errors.append(failure)
        if empty and errors:
            raise errors[0]
        for error in errors:
            if error.message not in stats.failed.values():
                _log.warning("%s", error.message)
                stats.failed[error.message] = error.message


def study_runs(logs: Sequence[Path], homes: Sequence[Path], options: Wanted) -> StudyRuns:
    """Return the study of one folder; `logs` are foreign logs given with it.

    Raises:
        StoreError: study.json is damaged, or several studies are mixed.
    """
    if logs:
        raise StoreError("foreign logs and run folders cannot be put into one table")
    if len(homes) > 1:
        names = ", ".join(home.name for home in homes)
        raise StoreError(f"a table contains one study, not {len(homes)}: {names}")
    (runs, copies), manifest = without_copies(runs_below(homes[0])), read_study(homes[0])
    # Its signatures are slow to load, and foreign tables need none.
    from hpc_train.pipeline.diagnose import problem_of

    if manifest:
        study = expected_study(manifest, runs, problem_of)
    else:
        study = single_jobs(homes[0], runs, problem_of)
    study = msgspec.structs.replace(study, notes=(*study.notes, *copies))
    expected_ids = {run.run_id for run in study.runs}
    own = tuple(run for run in runs if run.folder.run_id in expected_ids)
    return StudyRuns(study, own, options.with_patterns(manifest.spec.patterns if manifest else ()))
