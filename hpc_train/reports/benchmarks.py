"""Runs of bandwidth benchmarks -> the points and runs that have a result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from hpc_train.model.measurement import CONTRADICTED, EXCLUDED
from hpc_train.model.report import Report
from hpc_train.reports.verdicts import verdicts_of

Row = Mapping[str, Any]
Key = tuple[Any, ...]
_SIZES = ("series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "gpus")
_DONE = ("COMPLETED", EXCLUDED)


def key_of(row: Row) -> Key:
    """Return the key of a point, or of the point of a run."""
    return tuple(row.get(name) for name in _SIZES)


def benchmarked(runs: Sequence[Row], measured: Collection[str]) -> dict[Key, int]:
    """Return the points whose runs are all successful benchmarks, with their number of runs."""
    found: dict[Key, int] = {}
    lacking = set()
    for row in runs:
        if row["state"] == EXCLUDED:
            continue
        if _is_benchmark(row, measured):
            found[key_of(row)] = found.get(key_of(row), 0) + 1
        else:
            lacking.add(key_of(row))
    return {key: count for key, count in found.items() if key not in lacking}


def without_result(report: Report) -> Iterator[Row]:
    """Yield the runs that have neither a result nor a bandwidth that a gate decided on."""
    measured = {verdict.where for verdict in verdicts_of(report) if verdict.gate == "busbw"}
    for row in report.run_rows:
        if row["state"] not in _DONE and not _is_benchmark(row, measured):
            yield row


def _is_benchmark(row: Row, measured: Collection[str]) -> bool:
    """Whether a run succeeded and has a bandwidth, and its log does not contradict its size."""
    own = row["state"] == "UNPARSED" and row["run_id"] in measured
    return own and not str(row["problem"]).startswith(CONTRADICTED)
