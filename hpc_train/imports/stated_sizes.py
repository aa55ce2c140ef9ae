"""Foreign runs and stated values -> runs with sizes, axes and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hpc_train.imports.points_file import Points, by_run
from hpc_train.model.expected_study import EXCLUDED, ExpectedRun, ExpectedStudy
from hpc_train.model.record import UNITS, Record
from hpc_train.model.result_columns import BATCH, Stated

# As in the run table: the log contradicts the stated value.
_UNPARSED = "UNPARSED"


def sized(
    study: ExpectedStudy,
    run_level: Sequence[Record],
    points: Points,
    logs: Mapping[str, list[Path]],
) -> tuple[ExpectedStudy, tuple[Record, ...]]:
    """Return the study with the stated values of its runs, and a record of each stated batch.

    `run_level` are the records with the sizes of the runs. A run that contradicts its stated size
    has no result.

    Raises:
        LogParseError: a key of the file names no run.
    """
    found = by_run(points, logs)
    printed: dict[str, list[Record]] = {}
    for record in run_level:
        if record.metric in ("world_size", BATCH) and not record.variant:
            printed.setdefault(record.run, []).append(record)
    runs: list[ExpectedRun] = []
    records: list[Record] = []
    counts: Counter[str] = Counter()
    for run in study.runs:
        if run.run_id not in found:
            runs.append(run)
            continue
        key, stated = found[run.run_id]
        place = points.places[key]
        counts[repr(stated)] += 1
        sized_run = _sized(run, stated, place, printed.get(run.run_id, ()))
        runs.append(msgspec.structs.replace(sized_run, repetition=counts[repr(stated)]))
        if stated.global_batch is not None:
            records.append(_batch(run.run_id, place, stated.global_batch))
    unstated = [run.run_id for run in study.runs if run.run_id not in found]
    notes = (*study.notes, *_unstated(unstated, points.path))
    changed = msgspec.structs.replace(study, runs=tuple(runs), notes=notes, **points.changes)
    return changed, tuple(records)


def _sized(run: ExpectedRun, stated: Stated, place: str, printed: Sequence[Record]) -> ExpectedRun:
    state, problem = run.state, run.problem
    if stated.exclude:
        state, problem = EXCLUDED, stated.exclude
    elif contradiction := next(_contradictions(run, stated, printed), ""):
        state, problem = _UNPARSED, f"{contradiction}, {place} says otherwise"
    return msgspec.structs.replace(
        run, axes={**run.axes, **stated.axes}, sizes=stated.sizes, state=state, problem=problem,
        conditions={**run.conditions, **stated.conditions},
    )  # fmt: skip


def _contradictions(run: ExpectedRun, stated: Stated, printed: Sequence[Record]) -> Iterator[str]:
    ranks = stated.sizes.get("ranks")
    planned = {"world_size": ranks, BATCH: stated.global_batch}
    for record in printed:
        wanted = planned[record.metric]
        if wanted is not None and record.value != wanted:
            yield (
                f"the log says {record.metric} {record.value:g}, not {wanted:g} "
                f"({record.source}:{record.line})"
            )
    if ranks is not None and run.ranks > ranks:
        yield f"the log is of {run.ranks} ranks or more, not of {ranks}"


def _batch(run: str, place: str, value: float) -> Record:
    file, _, line = place.rpartition(":")
    return Record(
        run=run, source=file, line=int(line), parser="points", metric=BATCH, value=value,
        unit=UNITS[BATCH], scope="global",
    )  # fmt: skip


def _unstated(runs: Sequence[str], path: Path) -> Iterator[str]:
    if runs:
        shown = ", ".join(runs[:6]) + (", …" if len(runs) > 6 else "")
        yield f"{path} does not state {shown}: the size is taken from the log, if it contains one"
