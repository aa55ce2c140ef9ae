"""Runs that measured a bandwidth and train nothing -> which of them have what was asked for."""

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
    """Return what tells the point of a run, or a point, from others."""
    return tuple(row.get(name) for name in _SIZES)


def benchmarked(runs: Sequence[Row], measured: Collection[str]) -> dict[Key, int]:
    """Return the points all of whose runs are benchmarks that measured, and how many they are."""
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
    """Yield the runs that have no result, and no bandwidth of which a gate decided either."""
    measured = {verdict.where for verdict in verdicts_of(report) if verdict.gate == "busbw"}
    for row in report.run_rows:
        if row["state"] not in _DONE and not _is_benchmark(row, measured):
            yield row


def _is_benchmark(row: Row, measured: Collection[str]) -> bool:
    """Whether a run ended well and has a bandwidth; not when its log contradicts its size."""
    own = row["state"] == "UNPARSED" and row["run_id"] in measured
    return own and not str(row["problem"]).startswith(CONTRADICTED)
