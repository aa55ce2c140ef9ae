"""A folder of runs -> the expected runs of its study, its runs, and their records in packs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpc_train.base.errors import LogParseError, StoreError
from hpc_train.base.files import is_folder, is_regular
from hpc_train.logs.collect import logs_of, packs_in
from hpc_train.logs.log_file import log_files
from hpc_train.logs.read_log import Log, ParseStats, Wanted, pressed, unpressed, with_scope
from hpc_train.logs.record import Pack, Record, packs_of
from hpc_train.logs.record_file import json_lines, read_record_file
from hpc_train.runs.expected_runs import ExpectedStudy, expected_study, single_jobs, without_copies
from hpc_train.runs.json_files import read_cache, write_cache
from hpc_train.runs.run import JobState, Run
from hpc_train.runs.run_folders import read_study
from hpc_train.runs.run_states import runs_below

_DECODE = msgspec.json.Decoder(Record).decode_lines
_log = logging.getLogger(__name__)


def run_records(run: Run, options: Wanted, stats: ParseStats) -> Iterator[Pack]:
    """Yield a run's records: from its logs or, if they are deleted, from records.jsonl.

    Those of a finished run are stored in records.jsonl; a failure to write is ignored.
    """
    folder, own_stats = run.folder, ParseStats()
    if not is_folder(folder.logs):
        yield from packs_of(_stored(folder.records))
        return
    logs = logs_of(folder.run_id, [folder.logs], folder.path)
    lasts = options.usual and run.state.finished and not _has_all(folder.records, logs)
    kept = []
    for pack in packs_in(logs, options, own_stats):
        if lasts:
            kept.append(pressed(pack))
        yield pack
    stats.add(own_stats)
    if lasts:
        write_cache(folder.records, (json_lines(unpressed(pack)).encode() for pack in kept))


def _stored(path: Path) -> Sequence[Record]:
    try:
        return read_cache(path, _DECODE) or ()
    except LogParseError:
        # Slower, but reports the damaged line, or that a newer hpctrain wrote it.
        return read_record_file(path)


def _has_all(records: Path, logs: Sequence[Log]) -> bool:
    """Whether the records were written after the logs."""
    if not is_regular(records):
        return False
    written = records.stat().st_mtime_ns
    return all(log.path.stat().st_mtime_ns <= written for log in logs)


class StudyRuns(NamedTuple):
    """A study, its runs that count, and the options for reading their logs."""

    study: ExpectedStudy
    runs: tuple[Run, ...]
    options: Wanted

    def packs(self, stats: ParseStats) -> Iterator[Pack]:
        """Yield the records of all runs; `stats` is updated.

        A run that cannot be read is recorded there and does not affect the others.

        Raises:
            LogParseError: there is no record, and a run cannot be read.
        """
        errors: list[LogParseError] = []
        empty = True
        for run in self.runs:
            try:
                for pack in run_records(run, self.options, stats):
                    empty = False
                    yield _of_one_rank(pack) if has_one_rank(run) else pack
            except LogParseError as failure:
                errors.append(failure)
        if empty and errors:
            raise errors[0]
        for error in errors:
            if error.message not in stats.failed.values():
                _log.warning("%s", error.message)
                stats.failed[error.message] = error.message


def has_one_rank(run: Run) -> bool:
    """Whether a run is known to have one rank."""
    return run.manifest is not None and run.manifest.plan.topology.world_size == 1


def _of_one_rank(pack: Pack) -> Pack:
    """Return the records of a run with one rank: a rate of unknown scope is that of the job."""
    pack.kinds = [with_scope(kind, "global") for kind in pack.kinds]
    return pack


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
    if manifest:
        study = expected_study(manifest, runs, _problem_of)
    else:
        study = single_jobs(homes[0], runs, _problem_of)
    study = msgspec.structs.replace(study, notes=(*study.notes, *copies))
    expected_ids = {run.run_id for run in study.runs}
    own = tuple(run for run in runs if run.folder.run_id in expected_ids and not run.newer)
    return StudyRuns(study, own, options.with_patterns(manifest.spec.patterns if manifest else ()))


def deleted_logs(run: Run) -> str:
    """Return that the logs of a run were deleted; empty if there are some, or their records."""
    logs = run.folder.logs
    stored = not is_folder(logs) and is_regular(run.folder.records)
    # The executor writes one into every run folder.
    return "" if stored or log_files([logs]) else f"its logs were deleted: {logs}"


def _problem_of(run: Run) -> str:
    """Return why a run has no result, or an empty string."""
    if run.state is JobState.COMPLETED:
        return run.problem or deleted_logs(run)
    # Signatures are slow to load, and runs that completed need none.
    from hpc_train.diagnosis.diagnose_runs import problem_of

    return problem_of(run)
