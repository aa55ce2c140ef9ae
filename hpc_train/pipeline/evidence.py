"""Run folders and foreign logs -> the runs that a report expects, and their records."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence, Set
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.model.measurement import ExpectedRun, ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.model.study import Warmup
from hpc_train.model.submission import JobState
from hpc_train.model.transport import Transport
from hpc_train.model.value import Value
from hpc_train.pipeline.conditions import conditions_of
from hpc_train.pipeline.expectation import undeclared
from hpc_train.pipeline.foreign import foreign_runs, nothing
from hpc_train.pipeline.links import link_rate, link_warnings
from hpc_train.pipeline.mlperf_scores import mlperf_notes
from hpc_train.pipeline.models import model_notes
from hpc_train.pipeline.opening import open_bundle
from hpc_train.pipeline.ranks_apart import apart_warnings
from hpc_train.pipeline.search import Search
from hpc_train.pipeline.sources import bundle_of, tell_apart
from hpc_train.pipeline.study_runs import StudyRuns, study_runs
from hpc_train.pipeline.transport import promised, run_transport, transport_notes
from hpc_train.records.census import Census
from hpc_train.records.collect import records_of, wanted
from hpc_train.records.log_names import rank_of
from hpc_train.records.nccl.read import transport_of
from hpc_train.records.reading import Log, Wanted

# What benchmarks of networks measure, which train nothing.
_OF_NETWORK = frozenset({"algbw", "busbw", "latency", "wrong_values", "world_size"})


class Evidence(Value, frozen=True, kw_only=True):
    """What was asked for, and what was measured; `unreadable` says which logs are, and why.

    `own` are the runs of the study that have a folder. `transports` are what NCCL used in each run,
    by its name, and `files` the logs and tables of anybody that were read; of those that a bundle
    stands for, `digested` holds a line each.
    """

    study: ExpectedStudy
    records: tuple[Record, ...]
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    own: tuple[Run, ...] = ()
    transports: Mapping[str, Transport] = MappingProxyType({})
    files: tuple[Path, ...] = ()
    digested: tuple[str, ...] = ()


def evidence(words: Sequence[str], search: Search, census: Census | None = None) -> Evidence:
    """Gather a study, a job's runs, one run, logs of anybody, or a bundle; `census` is added to.

    Raises:
        UnknownNameError: a word names neither a run nor a file, or there is no such format.
        StoreError: study.json or a bundle is damaged, or several studies are mixed.
        LogParseError: no log is named, logs cannot be read, or hold nothing that is known.
    """
    if not words:
        raise LogParseError("no log is named", "name a log, a folder of logs, a run or a study")
    if bundle := bundle_of(words):
        return Evidence(**open_bundle(bundle)._asdict())
    logs, homes = tell_apart(words, search.root)
    look = wanted(search.form, search.prefix, search.patterns)
    seen = Census() if census is None else census
    return _own(study_runs(logs, homes, look), seen) if homes else _foreign(logs, look, seen)


def _own(found: StudyRuns, census: Census) -> Evidence:
    study, own, records = found.study, found.runs, tuple(found.records(census))
    promise = functools.cache(promised)
    by_id = {run.folder.run_id: run for run in own}
    used = {name: run_transport(run, promise) for name, run in by_id.items()}
    slow = link_warnings(records, lambda name: link_rate(by_id[name], used[name]))
    conditions = {name: conditions_of(run, used[name]) for name, run in by_id.items()}
    found_all = _evidence(_with_conditions(study, conditions), records, used, slow, census)
    return msgspec.structs.replace(found_all, own=own)


def _foreign(paths: Sequence[Path], look: Wanted, census: Census) -> Evidence:
    runs = foreign_runs(paths)
    logs = list(chain.from_iterable(runs.values()))
    records = tuple(records_of(logs, look, census))
    used = {run: transport_of([log.path for log in files]) for run, files in runs.items()}
    if not records and not any(used.values()):
        raise nothing(logs, census)
    found = _metrics(records)
    expected = [
        ExpectedRun(
            run_id=run,
            axes={},
            repetition=number,
            topology=None,
            state=(JobState.COMPLETED if run in found else JobState.UNKNOWN).value,
            problem=_problem(found.get(run, frozenset())),
            ranks=1 + max([census.ranks.get(run, -1), *(_rank(log) for log in files)]),
        )
        for number, (run, files) in enumerate(runs.items(), start=1)
    ]
    # The first interval that a framework reports holds compilation and the set-up of NCCL.
    study = undeclared("logs", tuple(expected), Warmup(steps=1))
    notes = (*model_notes(records), *mlperf_notes(log.path for log in logs))
    study = msgspec.structs.replace(study, notes=(*study.notes, *notes))
    slow = link_warnings(records, lambda name: link_rate(None, used[name]))
    study = _with_conditions(study, {run: conditions_of(None, used[run]) for run in runs})
    found_all = _evidence(study, records, used, slow, census)
    return msgspec.structs.replace(found_all, files=tuple(log.path for log in logs))


def _with_conditions(study: ExpectedStudy, found: Mapping[str, Mapping[str, str]]) -> ExpectedStudy:
    """Add what is recorded of each run to what a person stated of it, which wins."""
    runs = tuple(
        msgspec.structs.replace(run, conditions={**found.get(run.run_id, {}), **run.conditions})
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _rank(log: Log) -> int:
    rank = rank_of(log.path)
    return -1 if rank is None else rank


def _metrics(records: Sequence[Record]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        if record.metric == "condition":
            continue
        found.setdefault(record.run, set()).add(record.metric)
    return found


def _problem(metrics: Set[str]) -> str:
    """Say why a log is no row of a speedup table, where what it holds tells."""
    if not metrics:
        return "no line of a known format; see hpctrain collect"
    if metrics <= _OF_NETWORK:
        named = ", ".join(sorted(metrics - {"world_size"}))
        return f"a benchmark ({named}), not a training; hpctrain collect prints its values"
    return ""


def _evidence(
    study: ExpectedStudy,
    records: Sequence[Record],
    used: Mapping[str, Transport | None],
    slow: Sequence[str],
    census: Census,
) -> Evidence:
    warnings = (*transport_notes(used), *apart_warnings(records), *slow)
    runs = tuple(
        msgspec.structs.replace(run, transport=way.verdict if (way := used.get(run.run_id)) else "")
        for run in study.runs
    )
    noted = msgspec.structs.replace(study, runs=runs, notes=(*study.notes, *warnings))
    return Evidence(
        study=noted,
        records=tuple(records),
        warnings=warnings,
        unreadable=tuple(census.failed.values()),
        transports={run: way for run, way in used.items() if way is not None},
    )
