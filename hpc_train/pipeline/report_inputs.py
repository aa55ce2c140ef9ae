"""Run folders and foreign results -> the runs of a report, and their records."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.imports.duplicates import refuse_same_logs
from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.log_selection import Search
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.model.transport import Transport
from hpc_train.model.value import Value
from hpc_train.pipeline.classify_inputs import bundle_of, tell_apart
from hpc_train.pipeline.foreign_results import load_foreign
from hpc_train.pipeline.nccl_transport import Promise, promised, run_transport, transport_notes
from hpc_train.pipeline.slow_links import Rate, link_rate, link_warnings
from hpc_train.pipeline.study_runs import StudyRuns, study_runs
from hpc_train.records.collect import wanted
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.singleton_processes import apart_warnings
from hpc_train.runs.read_bundle import open_bundle
from hpc_train.runs.run_conditions import conditions_of
from hpc_train.specs.exclusions import exclusions, without
from hpc_train.tables.run_level_records import unknown_scopes

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


def selection(
    root: Path,
    *,
    form: str = "auto",
    points: Path | None = None,
    exclude: Sequence[str] = (),
    allow_failed: bool = False,
) -> Search:
    """Return the runs and logs of a report; `exclude` has words like `1-srun-r2=node 3 was down`.

    Raises:
        SpecError: an exclusion without a reason.
    """
    return Search(
        root=root,
        form=form,
        points=points,
        excluded=exclusions(exclude),
        allow_failed=allow_failed,
    )


class ReportInputs(Value, frozen=True, kw_only=True):
    """Requested runs and measurements; `unreadable` lists logs with errors.

    `own` are the runs of the study that have a folder. `transports` are what NCCL used in each run,
    by its name, and `files` the foreign logs and tables that were read; for a bundle, `digested`
    has a line for each. A bundle is `packed`: nothing is read from this machine; `against` are rows
    of the runs of the regression gate's reference.
    """

    study: ExpectedStudy
    records: tuple[Record, ...] | pd.DataFrame
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    own: tuple[Run, ...] = ()
    transports: Mapping[str, Transport] = MappingProxyType({})
    files: tuple[Path, ...] = ()
    digested: tuple[str, ...] = ()
    packed: bool = False
    against: tuple[dict[str, Any], ...] = ()


def evidence(
    words: Sequence[str], search: Search, census: ParseStats | None = None
) -> ReportInputs:
    """Gather a study, a job's runs, one run, a bundle, or any logs, records and tables.

    `census` is updated.

    Raises:
        UnknownNameError: an argument is neither a run nor a file, or there is no such format.
        StoreError: study.json or a bundle is damaged, or several studies are mixed.
        LogParseError: no log is given, logs cannot be read, or contain no known format.
        ReportError: an excluded run does not exist. LogParseError: a job is given twice.
    """
    if not words:
        raise LogParseError("no log was given", "name a log, a folder of logs, a run or a study")
    if bundle := bundle_of(words):
        opened = ReportInputs(**open_bundle(bundle)._asdict())
        study = without(opened.study, search.excluded, None)
        return msgspec.structs.replace(opened, study=study)
    paths, homes = tell_apart(words, search.root)
    seen = ParseStats() if census is None else census
    if not homes:
        return _foreign(paths, search, seen)
    if search.points is not None:
        raise LogParseError(f"{search.points}: the sizes of hpctrain's runs are known")
    look = wanted(search.form, search.prefix, search.patterns)
    found = _own(study_runs(paths, homes, look), seen)
    study = without(found.study, search.excluded, homes[0])
    return msgspec.structs.replace(found, study=study)


def _own(found: StudyRuns, census: ParseStats) -> ReportInputs:
    study, own, records = found.study, found.runs, tuple(found.records(census))
    promise = functools.cache(promised)
    by_id = {run.folder.run_id: run for run in own}
    used = {name: _transport(run, promise, census) for name, run in by_id.items()}
    warned = _warned(records, lambda name: link_rate(by_id[name], used[name]))
    conditions = {name: conditions_of(run, used[name]) for name, run in by_id.items()}
    found_all = _evidence(_with_conditions(study, conditions), records, used, warned, census)
    return msgspec.structs.replace(found_all, own=own)


def _transport(run: Run, promise: Promise, census: ParseStats) -> Transport | None:
    """Return the transport of a run; a damaged stored file is recorded and gives None."""
    try:
        return run_transport(run, promise)
    except LogParseError as failure:
        _log.warning("%s", failure.message)
        census.failed[failure.message] = failure.message
        return None


def _foreign(paths: Sequence[Path], search: Search, census: ParseStats) -> ReportInputs:
    found = load_foreign(paths, search, census)
    said = {run: conditions_of(None, way) for run, way in found.used.items()}
    study = _with_conditions(without(found.study, search.excluded, None), said)
    refuse_same_logs(study, found.files)
    warned = _warned(found.few, lambda name: link_rate(None, found.used.get(name)))
    found_all = _evidence(study, found.records, found.used, warned, census)
    return msgspec.structs.replace(found_all, files=found.read)


def _with_conditions(study: ExpectedStudy, found: Mapping[str, Mapping[str, str]]) -> ExpectedStudy:
    """Add the recorded conditions of each run to the stated ones, which take precedence."""
    runs = tuple(
        msgspec.structs.replace(run, conditions={**found.get(run.run_id, {}), **run.conditions})
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _warned(few: Sequence[Record], rate: Rate) -> tuple[str, ...]:
    return (*apart_warnings(few), *link_warnings(few, rate))


def _scope_notes(records: tuple[Record, ...] | pd.DataFrame) -> Iterator[str]:
    for (run, parser), count in unknown_scopes(records).items():
        values = f"{count} value{'s' * (count != 1)} of {parser} left out"
        yield f"{run}: {values}: their scope is unknown; hpctrain collect shows them"


def _evidence(
    study: ExpectedStudy,
    records: tuple[Record, ...] | pd.DataFrame,
    used: Mapping[str, Transport | None],
    warned: Sequence[str],
    census: ParseStats,
) -> ReportInputs:
    warnings = (*transport_notes(used), *warned, *census.refusals(), *_scope_notes(records))
    runs = tuple(
        msgspec.structs.replace(run, transport=way.verdict if (way := used.get(run.run_id)) else "")
        for run in study.runs
    )
    noted = msgspec.structs.replace(study, runs=runs, notes=(*study.notes, *warnings))
    return ReportInputs(
        study=noted,
        records=records,
        warnings=warnings,
        unreadable=tuple(census.failed.values()),
        transports={run: way for run, way in used.items() if way is not None},
    )
