"""Arrays of records -> what describes a whole run: sizes, conditions, metrics, parsers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from hpc_train.base.metrics import RATE_RECORDS
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import OF_WHICH
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


def of_last_job(
    fields: RecordArrays, starts: Mapping[str, Sequence[int]]
) -> tuple[RecordArrays, list[str]]:
    """Return the records without those of earlier jobs in a log, and where the last one begins.

    `starts` are lines of each source by which a job may begin. One that continues the steps before
    it is the same job again.
    """
    dropped, places = np.zeros(len(fields.value), dtype=bool), []
    plain = (fields.step != NONE) & (fields.metric.among(("epoch_time", "accuracy")) < 0)
    for source, lines in starts.items():
        of_source = fields.source.among([source]) == 0
        own = np.flatnonzero(of_source & plain)
        for line in sorted(lines, reverse=True):
            above = fields.line[own] < line
            before, after = fields.step[own][above], fields.step[own][~above]
            # Ranks begin one after another.
            if len(after) and len(np.unique(before)) > 1 and after.min() <= before.min():
                late = of_source & (fields.line >= line)
                again = np.isin(fields.metric.codes, fields.metric.codes[late])
                dropped |= of_source & ~late & (again | (fields.step != NONE))
                places.append(f"{source}:{line}")
                break
    return fields.take(np.flatnonzero(~dropped)), places
