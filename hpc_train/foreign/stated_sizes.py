"""Foreign runs and values stated in a file or as options -> runs with sizes, axes and reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hpc_train.base.errors import LogParseError
from hpc_train.base.metrics import UNITS
from hpc_train.foreign.points_file import Points, by_run
from hpc_train.logs.record import BATCH, Record, Stated, complete_sizes
from hpc_train.runs.expected_runs import EXCLUDED, ExpectedRun, ExpectedStudy

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
    found = {run: (points.places[key], own) for run, (key, own) in by_run(points, logs).items()}
    records = tuple(
        _batch(run, place, stated.global_batch)
        for run, (place, stated) in found.items()
        if stated.global_batch is not None
    )
    unstated = [run.run_id for run in study.runs if run.run_id not in found]
    notes = (*study.notes, *_unstated(unstated, points.path))
    changed = msgspec.structs.replace(_stated(study, _printed(run_level), found), notes=notes)
    return msgspec.structs.replace(changed, **points.changes), records


def in_order(
    study: ExpectedStudy, run_level: Sequence[Record], sizes: Mapping[str, tuple[int, ...]]
) -> ExpectedStudy:
    """Return the study with sizes that were stated as options, a number for each log.

    Raises:
        LogParseError: other than one number for each log, numbers that contradict one another, or
        a log that contradicts its number.
    """
    names = [run.run_id for run in study.runs]
    for option, numbers in sizes.items():
        if len(numbers) != len(names):
            shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise LogParseError(
                f"--{option} has {len(numbers)} number{'s' * (len(numbers) != 1)}, and there are "
                f"{len(names)} logs: {shown}",
                "give a number for each log, in this order",
            )
    found: dict[str, tuple[str, Stated]] = {}
    printed = _printed(run_level)
    for place, run in enumerate(study.runs):
        own = {option: numbers[place] for option, numbers in sizes.items()}
        words = " ".join(f"--{option} {number}" for option, number in own.items())
        try:
            stated = Stated(sizes=complete_sizes(own))
        except ValueError as wrong:
            raise LogParseError(f"{run.run_id}: {words}: {wrong}") from None
        for text in _contradictions(run, stated, printed.get(run.run_id, ())):
            raise LogParseError(f"{run.run_id}: {words}, but {text}")
        found[run.run_id] = words, stated
    return _stated(study, printed, found)


def _printed(run_level: Sequence[Record]) -> Mapping[str, Sequence[Record]]:
    """Return the records of each run that state its size or batch."""
    printed: dict[str, list[Record]] = {}
    for record in run_level:
        if record.metric in ("world_size", BATCH) and not record.variant:
            printed.setdefault(record.run, []).append(record)
    return printed


def _stated(
    study: ExpectedStudy,
    printed: Mapping[str, Sequence[Record]],
    found: Mapping[str, tuple[str, Stated]],
) -> ExpectedStudy:
    """Return the study with the stated values of its runs, each with its place."""
    runs: list[ExpectedRun] = []
    counts: Counter[str] = Counter()
    for run in study.runs:
        if run.run_id in found:
            place, stated = found[run.run_id]
            counts[repr(stated)] += 1
            own = _sized(run, stated, place, printed.get(run.run_id, ()))
            run = msgspec.structs.replace(own, repetition=counts[repr(stated)])
        runs.append(run)
    return msgspec.structs.replace(study, runs=tuple(runs))


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
        yield f"the log names rank {run.ranks - 1}, so it is not of {ranks}"


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
