"""A run that ended well and printed nothing that can be measured -> what would read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.errors import HpcTrainError
from hpc_train.model.result_columns import RESULTS
from hpc_train.model.run import Run
from hpc_train.model.submission import JobState
from hpc_train.pipeline.study_runs import deleted_logs, has_one_rank, run_records
from hpc_train.records.collect import logs_of, wanted
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.pattern_suggestions import Suggestion, suggested_for
from hpc_train.runs.run_folders import read_study

# A benchmark of a network measures no training, and `collect` prints what it measures.
_MEASURED = {*RESULTS, "busbw"}


def unmeasured(home: Path, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return what to print of the first run that ended well, if nothing in it can be measured.

    A run of a study is to be measured. A single job may be no training, so that only lines which
    look like a measurement are shown. The logs of one run are read; the result is stored with it.
    """
    from hpc_train.tables.record_arrays import gathered
    from hpc_train.tables.run_level_records import rate_questions

    run = next((one for one in runs if one.state is JobState.COMPLETED), None)
    try:
        manifest = read_study(home)
        if run is None:
            return ()
        if gone := deleted_logs(run):
            return (f"{run.folder.run_id} ended well; {gone}",)
        options = wanted("auto").with_patterns(manifest.spec.patterns if manifest else ())
        records = gathered(run_records(run, options, ParseStats()))
        kinds = set(zip(records.metric.texts(), records.scope.texts(), strict=True))
        # The rate of a single rank is that of the job.
        unclear = () if has_one_rank(run) else ("unknown",)
        measured = any(metric in _MEASURED and scope not in unclear for metric, scope in kinds)
        questions = [] if measured else [*rate_questions(records).values()][:1]
        if measured or questions:
            asked = f"hpctrain report {home.name} --rates job, or --rates rank"
            return tuple(f"{question} {asked}" for question in questions)
    except HpcTrainError:
        # `report` names the reason.
        return ()
    logs = [log.path for log in logs_of(run.folder.run_id, [run.folder.logs], run.folder.path)]
    found = suggested_for(logs)
    if manifest is None and not (found and any(one.metric in _MEASURED for one in found[1])):
        return ()
    return tuple(_lines(home, run, found))


def _lines(home: Path, run: Run, found: tuple[Path, list[Suggestion]] | None) -> Iterator[str]:
    name = run.folder.run_id
    yield f"{name} ended well, and none of its lines states a time or a rate that hpctrain reads"
    if found is None:
        yield "  print one in the script: hpctrain help events"
        return
    path, suggestions = found
    for one in suggestions:
        yield f"  {path.name}:{one.line}: {one.words}"
    yield f"  finished runs: hpctrain report {home.name} with these options"
    yield f"  the next ones: in a study file, {_keys(suggestions)}"


def _keys(found: Sequence[Suggestion]) -> str:
    """Return the key of a study file; JSON is YAML."""
    keys = []
    for one in found:
        scale = f", scale: {json.dumps(one.pattern.scale)}" if one.pattern.scale else ""
        keys.append(f"{{regex: {json.dumps(one.pattern.regex)}, scope: per_rank{scale}}}")
    return f"pattern: [{', '.join(keys)}]"
