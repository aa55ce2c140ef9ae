"""Arrays of records -> what describes a whole run: sizes, conditions, metrics, parsers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import RATE_RECORDS, RESULTS
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import OF_WHICH, ExpectedRun
from hpc_train.runs.run import JobState
from hpc_train.scaling.record_arrays import NONE, Mask, RecordArrays, TextCodes, packed

WHOLE_RUN = ("world_size", "global_batch_size", "condition", "seed")
_IDENTITY = ("run", "parser", "metric", "variant")


def run_level_records(
    fields: RecordArrays, metrics: Sequence[str] = WHOLE_RUN
) -> tuple[Record, ...]:
    """Return the records of these metrics and of networks, without repetitions."""
    chosen = (fields.metric.among(metrics) >= 0) | (fields.parser.among(["perftest"]) >= 0)
    few = fields.take(np.flatnonzero(chosen))
    texts = {name: getattr(few, name).codes for name in _IDENTITY}
    rows = pd.DataFrame({**texts, "value": few.value, "message_size": few.message_size})
    return tuple(few.take(np.flatnonzero(~rows.duplicated())).records())


def metrics_of(fields: RecordArrays) -> dict[str, set[str]]:
    """Return the runs with a measurement in order of appearance, each with its metrics."""
    own = fields.take(np.flatnonzero(fields.metric.among(["condition"]) < 0))
    run, metric = own.run.codes, own.metric.codes
    _, first = np.unique(packed(run, metric), return_index=True)
    found: dict[str, set[str]] = {}
    for place in np.sort(first).tolist():
        found.setdefault(own.run.names[run[place]], set()).add(own.metric.names[metric[place]])
    return found


def most_steps(fields: RecordArrays, metrics: Iterable[str]) -> int:
    """Return the steps from the first to the last measured one of the longest run."""
    own = fields.take(np.flatnonzero((fields.metric.among(metrics) >= 0) & (fields.step != NONE)))
    steps = pd.Series(own.step).groupby(own.run.codes)
    return int((steps.max() - steps.min() + 1).max()) if len(own.step) else 0


def highest_ranks(fields: RecordArrays) -> dict[str, int]:
    """Return the highest rank that the records of each run name."""
    ranks = pd.Series(fields.rank).groupby(fields.run.codes).max()
    return {fields.run.names[int(run)]: int(rank) for run, rank in ranks.items() if rank >= 0}


def parsers_of(fields: RecordArrays) -> Counter[str]:
    """Return the number of records of each parser."""
    codes, counts = np.unique(fields.parser.codes, return_counts=True)
    names = [fields.parser.names[code] for code in codes.tolist()]
    return Counter(dict(zip(names, counts.tolist(), strict=True)))


def has_step_times(fields: RecordArrays) -> bool:
    """Whether a program printed step times; those that a table states are of whole runs."""
    printed = (fields.metric.among(["step_time"]) == 0) & (fields.parser.among(["table"]) < 0)
    return bool(printed.any())


def first_of_parser(fields: RecordArrays, parser: str) -> tuple[Record, int] | None:
    """Return the first record of a parser and the number of runs with records of it, if any."""
    own = fields.take(np.flatnonzero(fields.parser.among([parser]) == 0))
    if not len(own.value):
        return None
    first = next(iter(own.take(np.arange(1)).records()))
    return first, len(np.unique(own.run.codes))


def _unknown_rates(fields: RecordArrays) -> Mask:
    """Which records are rates of the job or of a rank: the line does not say which."""
    plain = fields.variant.among([""]) == 0
    found: Mask = plain & (fields.scope.among(["unknown"]) == 0)
    return found & (fields.metric.among(RATE_RECORDS) >= 0)


def rate_questions(fields: RecordArrays) -> dict[str, str]:
    """Return for each run with such a rate the last one, and what is not known of it."""
    own = fields.take(np.flatnonzero(_unknown_rates(fields)))
    return {
        one.run: f"{one.value:{'.0f' if one.value > 1e3 else '.4g'}} "
        f"{one.metric.partition('_')[0]}/s: {OF_WHICH}"
        for one in own.records()
    }


def with_rates(fields: RecordArrays, of: Literal["job", "rank"]) -> RecordArrays:
    """Return the records; such rates are those of the job, or of the rank with one GPU."""
    scope = "global" if of == "job" else "per_gpu"
    names = [*fields.scope.names, scope]
    codes = np.where(_unknown_rates(fields), len(names) - 1, fields.scope.codes)
    return fields._replace(scope=TextCodes(codes, names))


_TIMED = tuple(metric.record for metric in RESULTS)
# Fewer can be equal by chance: programs print few digits.
LEAST_EQUAL = 10


def marks_of(fields: RecordArrays, runs: Sequence[ExpectedRun]) -> dict[str, int]:
    """Return a number for each foreign run that counts, computed from its measurements.

    The runs of the records are numbered as `runs` are. Those with few measurements have none.
    """
    ok = JobState.COMPLETED.value
    counted = np.zeros(len(fields.run.names) + 1, dtype=bool)
    counted[: len(runs)] = [run.topology is None and run.state == ok for run in runs]
    chosen = np.flatnonzero(counted[fields.run.codes])
    own = fields.take(chosen)
    timed = own.metric.among(_TIMED) >= 0
    enough = np.bincount(own.run.codes[timed], minlength=len(runs)) >= LEAST_EQUAL
    if not enough.any():
        return {}
    columns = {
        **{name: getattr(own, name) for name in ("line", "step", "rank", "value")},
        **{name: getattr(own, name).codes for name in ("metric", "variant")},
    }
    marks = np.zeros(len(runs), dtype=np.uint64)
    # A sum does not depend on the order of the records.
    each = pd.util.hash_pandas_object(pd.DataFrame(columns), index=False)
    np.add.at(marks, own.run.codes, each.to_numpy())
    return {runs[run].run_id: int(marks[run]) for run in np.flatnonzero(enough).tolist()}


def refuse_copies(marks: Mapping[str, int]) -> None:
    """Refuse copies of one log as repetitions; `marks` are those of the runs by name.

    Raises:
        ReportError: two logs are copies; the message names both.
    """
    first: dict[int, str] = {}
    for other, mark in marks.items():
        one = first.setdefault(mark, other)
        if one != other:
            raise ReportError(
                f"{one} and {other} hold the same measurements, line by line: one job, not two "
                "repetitions",
                f"give one of them, or exclude one: --exclude '{other}=a copy of {one}'",
            )
