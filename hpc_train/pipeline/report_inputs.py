"""Run folders and foreign results -> the runs of a report, and their records."""

from __future__ import annotations

import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from hpc_train.errors import HpcTrainError, LogParseError
from hpc_train.imports.duplicates import refuse_same_logs
from hpc_train.model.expected_study import ExpectedStudy
from hpc_train.model.log_selection import Search
from hpc_train.model.queue_limits import partition_named
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.model.transport import Transport
from hpc_train.model.value import Value
from hpc_train.pipeline.classify_inputs import classify
from hpc_train.pipeline.foreign_results import load_foreign
from hpc_train.pipeline.nccl_transport import (
    NetworkOf,
    run_transport,
    site_network,
    transport_notes,
)
from hpc_train.pipeline.study_runs import StudyRuns, study_runs
from hpc_train.records.collect import wanted
from hpc_train.records.guessed_records import GUESSING
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.singleton_processes import apart_warnings
from hpc_train.runs.run_conditions import conditions_of
from hpc_train.sites.gpu_peaks import gpu_peaks
from hpc_train.sites.load import load_site
from hpc_train.specs.report_options import exclusions, without
from hpc_train.tables.largest_message_bandwidth import headline, share_of_link

if TYPE_CHECKING:
    from hpc_train.tables.record_arrays import RecordArrays

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
    by its name, and `files` the foreign logs and tables that were read.
    """

    study: ExpectedStudy
    records: RecordArrays
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    own: tuple[Run, ...] = ()
    transports: Mapping[str, Transport] = MappingProxyType({})
    files: tuple[Path, ...] = ()


def report_inputs(
    words: Sequence[str], search: Search, stats: ParseStats | None = None
) -> ReportInputs:
    """Read a study, a job's runs, one run, or any logs, records and tables; `stats` is updated.

    Raises:
        UnknownNameError: an argument is neither a run nor a file, or there is no such format.
        StoreError: study.json is damaged, or several studies are mixed.
        LogParseError: no log is given, logs cannot be read, or contain no known format.
        ReportError: an excluded run does not exist. LogParseError: a job is given twice.
    """
    if not words:
        raise LogParseError("no log was given", "name a log, a folder of logs, a run or a study")
    paths, homes = classify(words, search.root)
    stats = ParseStats() if stats is None else stats
    if not homes:
        return _foreign(paths, search, stats)
    if search.points is not None:
        raise LogParseError(f"{search.points}: the sizes of hpctrain's runs are known")
    options = wanted(search.form, search.prefix, search.patterns)
    found = _own(study_runs(paths, homes, options), stats)
    study = without(found.study, search.excluded, homes[0])
    return msgspec.structs.replace(found, study=study)


def _own(found: StudyRuns, stats: ParseStats) -> ReportInputs:
    from hpc_train.tables.record_arrays import gathered

    own, records = found.runs, gathered(found.packs(stats))
    network_of = functools.cache(site_network)
    by_id = {run.folder.run_id: run for run in own}
    transports = {name: _transport(run, network_of, stats) for name, run in by_id.items()}
    warnings = _warnings(records, lambda name: link_rate(by_id[name], transports[name]))
    peaks = gpu_peaks(own)
    conditions = {
        name: {**peaks.get(name, {}), **conditions_of(run, transports[name])}
        for name, run in by_id.items()
    }
    inputs = _report_inputs(
        _with_conditions(found.study, conditions), records, transports, warnings, stats
    )
    return msgspec.structs.replace(inputs, own=own)


def _transport(run: Run, network_of: NetworkOf, stats: ParseStats) -> Transport | None:
    """Return the transport of a run; a damaged stored file is recorded and gives None."""
    try:
        return run_transport(run, network_of)
    except LogParseError as failure:
        _log.warning("%s", failure.message)
        stats.failed[failure.message] = failure.message
        return None


def _foreign(paths: Sequence[Path], search: Search, stats: ParseStats) -> ReportInputs:
    found = load_foreign(paths, search, stats)
    conditions = {
        run: conditions_of(None, transport) for run, transport in found.transports.items()
    }
    study = _with_conditions(without(found.study, search.excluded, None), conditions)
    refuse_same_logs(study, found.files)
    warnings = _warnings(found.records, lambda name: link_rate(None, found.transports.get(name)))
    inputs = _report_inputs(study, found.records, found.transports, warnings, stats)
    return msgspec.structs.replace(inputs, files=found.inputs)


def _with_conditions(
    study: ExpectedStudy, recorded: Mapping[str, Mapping[str, str]]
) -> ExpectedStudy:
    """Add the recorded conditions of each run to the stated ones, which take precedence."""
    if not recorded:
        return study
    runs = tuple(
        msgspec.structs.replace(run, conditions={**recorded.get(run.run_id, {}), **run.conditions})
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _with_transports(
    study: ExpectedStudy, transports: Mapping[str, Transport | None]
) -> ExpectedStudy:
    if not transports:
        return study
    runs = tuple(
        msgspec.structs.replace(
            run, transport=transport.verdict if (transport := transports.get(run.run_id)) else ""
        )
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _warnings(records: RecordArrays, rate: LinkRate) -> tuple[str, ...]:
    from hpc_train.tables.run_level_records import run_level_records

    run_level = run_level_records(records, ("world_size",))
    return (*apart_warnings(run_level), *link_warnings(run_level, rate))


def _scope_notes(records: RecordArrays) -> Iterator[str]:
    from hpc_train.tables.run_level_records import unknown_scopes

    for (run, parser), count in unknown_scopes(records).items():
        values = f"{count} value{'s' * (count != 1)} of {parser} left out"
        yield f"{run}: {values}: their scope is unknown; report --pattern and --scope read them"


def _report_inputs(
    study: ExpectedStudy,
    records: RecordArrays,
    transports: Mapping[str, Transport | None],
    warnings: Sequence[str],
    stats: ParseStats,
) -> ReportInputs:
    warnings = (*transport_notes(transports), *warnings, *stats.refusals(), *_scope_notes(records))
    notes, guessed = (*study.notes, *warnings), guessed_values(records, stats)
    noted = msgspec.structs.replace(
        _with_transports(study, transports), notes=notes, guessed=guessed
    )
    return ReportInputs(
        study=noted,
        records=records,
        warnings=warnings,
        unreadable=tuple(stats.failed.values()),
        transports={
            run: transport for run, transport in transports.items() if transport is not None
        },
    )


_LONGEST = 60


def guessed_values(records: RecordArrays, stats: ParseStats) -> str:
    """Return which logs the generic parser read, and how it read the first value; empty if none."""
    from hpc_train.tables.run_level_records import first_of_parser

    found = first_of_parser(records, GUESSING)
    if found is None:
        return ""
    first, runs = found
    more = f" and of {runs - 1} more run{'s' * (runs > 2)}" if runs > 1 else ""
    return (
        f"values of {_name(first)}{more} were read by the generic parser (e.g. line {first.line}: "
        f"{_printed(first, stats)}{first.metric} {first.value:.6g}{_unit(first)}): check them, or "
        "give a pattern (pattern: in the study file, or report --pattern)"
    )


def _name(record: Record) -> str:
    own = record.source.endswith(record.run)
    return record.run if own else f"{record.run}: {record.source}"


def _printed(record: Record, stats: ParseStats) -> str:
    """Return the line of a record, if it was just read."""
    seen = stats.known.get(GUESSING)
    if seen is None or (seen.source, seen.line) != (record.source, record.line):
        return ""
    text = " ".join(seen.text.split())
    return f"`{text[:_LONGEST]}{'…' * (len(text) > _LONGEST)}` as "


def _unit(record: Record) -> str:
    return "" if record.unit == "1" else f" {record.unit}"


# Minimum fraction of its rate that an intact link carries in long messages.
_HEALTHY, _LONG = 0.85, 1 << 16
LinkRate = Callable[[str], float | None]


def link_rate(run: Run | None, transport: Transport | None) -> float | None:
    """Return the speed of an adapter [Gbit/s]: from the site's profile, else from NCCL's log."""
    stated = [
        speed for adapter in (transport.adapters if transport else ()) for speed in adapter.gbps
    ]
    return (_profile_rate(run) if run else None) or max(stated, default=None)


def link_warnings(records: Iterable[Record], rate: LinkRate) -> tuple[str, ...]:
    """Return a warning for each run with slow links."""
    runs: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.parser == "perftest" and (record.message_size or 0) >= _LONG:
            runs[record.run].append(record)
    return tuple(text for run, found in runs.items() for text in _slow(run, found, rate))


def _slow(run: str, records: list[Record], rate: LinkRate) -> Iterable[str]:
    best, link = headline(records), rate(run)
    share = share_of_link(best.value, link) if best and link else 1.0
    if best and share < _HEALTHY:
        yield (
            f"{run}: perftest moves {best.value * 8:.3g} Gbit/s, {100 * share:.0f} % of the link's "
            f"{link:g}; a healthy link reaches {100 * _HEALTHY:.0f} %: check its speed (`ibstat`), "
            "the PCIe width and speed of the adapter (`lspci -vv`), the MTU and the NUMA node"
        )


def _profile_rate(run: Run) -> float | None:
    if run.manifest is None:
        return None
    try:
        site = load_site(run.manifest.plan.site)
    except HpcTrainError:
        return None
    found = partition_named(site.value, run.manifest.spec.partition)
    return found[1].nic_gbps if found else None
