"""Run folders and foreign logs -> the runs that a report expects, and their records."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from hpc_train.errors import StoreError
from hpc_train.model.measurement import ExpectedRun, ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.study import Warmup
from hpc_train.model.submission import JobState
from hpc_train.model.transport import Transport
from hpc_train.model.value import Value
from hpc_train.pipeline.expectation import expected_study, single_jobs, undeclared
from hpc_train.pipeline.foreign import foreign_runs
from hpc_train.pipeline.query import runs_below
from hpc_train.pipeline.run_records import run_records
from hpc_train.pipeline.search import Search
from hpc_train.pipeline.sources import tell_apart
from hpc_train.pipeline.transport import promised, run_transport, transport_notes
from hpc_train.records.census import Census
from hpc_train.records.collect import records_of, wanted
from hpc_train.records.nccl.read import transport_of
from hpc_train.records.reading import Wanted
from hpc_train.runs.store import read_study


class Evidence(Value, frozen=True, kw_only=True):
    """What was asked for, and what was measured."""

    study: ExpectedStudy
    records: tuple[Record, ...]
    warnings: tuple[str, ...] = ()


def evidence(words: Sequence[str], search: Search, census: Census | None = None) -> Evidence:
    """Gather a study, a job's runs, one run, or log files of anybody; `census` is added to.

    Raises:
        UnknownNameError: a word names neither a run nor a file, or there is no such format.
        StoreError: study.json is damaged, or several studies are mixed.
        LogParseError: a log cannot be read.
    """
    logs, homes = tell_apart(words, search.root)
    look = wanted(search.form, search.prefix, search.patterns)
    seen = Census() if census is None else census
    if logs and homes:
        raise StoreError("foreign logs and run folders cannot be put into one table")
    if logs:
        return _foreign(logs, look, seen)
    if len(homes) > 1:
        names = ", ".join(home.name for home in homes)
        raise StoreError(f"one table is made of one study, not of {len(homes)}: {names}")
    return _own(homes[0], look, seen)


def _own(home: Path, look: Wanted, census: Census) -> Evidence:
    runs = runs_below(home)
    manifest = read_study(home)
    study = expected_study(manifest, runs) if manifest else single_jobs(home, runs)
    look = look.with_patterns(manifest.spec.patterns if manifest else ())
    ours = {run.run_id for run in study.runs}
    own = [run for run in runs if run.folder.run_id in ours]
    records = [record for run in own for record in run_records(run, look, census)]
    promise = functools.cache(promised)
    used = {run.folder.run_id: run_transport(run, promise) for run in own}
    return _evidence(study, records, used)


def _foreign(paths: Sequence[Path], look: Wanted, census: Census) -> Evidence:
    runs = foreign_runs(paths)
    logs = list(chain.from_iterable(runs.values()))
    records = tuple(records_of(logs, look, census))
    found = {record.run for record in records}
    expected = [
        ExpectedRun(
            run_id=run,
            axes={},
            repetition=number,
            topology=None,
            state=(JobState.COMPLETED if run in found else JobState.UNKNOWN).value,
            problem="" if run in found else "no line that any parser knows; see docs/logs.md",
        )
        for number, run in enumerate(runs, start=1)
    ]
    # The first interval that a framework reports holds compilation and the set-up of NCCL.
    study = undeclared("logs", tuple(expected), Warmup(steps=1))
    used = {run: transport_of([log.path for log in files]) for run, files in runs.items()}
    return _evidence(study, records, used)


def _evidence(
    study: ExpectedStudy, records: Sequence[Record], used: Mapping[str, Transport | None]
) -> Evidence:
    warnings = transport_notes(used)
    runs = tuple(
        msgspec.structs.replace(run, transport=way.verdict if (way := used.get(run.run_id)) else "")
        for run in study.runs
    )
    noted = msgspec.structs.replace(study, runs=runs, notes=(*study.notes, *warnings))
    return Evidence(study=noted, records=tuple(records), warnings=warnings)
