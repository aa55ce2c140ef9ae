"""A report in JSON -> the entry of a history: its points, values and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hpc_train.errors import ReportError
from hpc_train.model.metrics import POINT_METRICS
from hpc_train.model.track import TRACK_SCHEMA, TrackEntry, TrackPoint, TrackValue
from hpc_train.tables.comparison import MUST_MATCH
from hpc_train.tables.matched_points import SIZES
from hpc_train.tables.plausible_range import usable

_BATCH = "global_batch"
_VALUES = tuple(metric.json_key or metric.key for metric in POINT_METRICS if metric.direction)
# Of the baseline they are 1 by definition.
_OF_BASELINE = ("efficiency", "speedup", "time_to_train_speedup", "time_to_train_efficiency")
# Facts about one study: names, times, digests that change with sizes, and the analysis.
_OF_STUDY = frozenset({
    "jobs", "submitted", "started", "ended", "config", "script", "logs", "records by parser",
    "warm-up left out", "a run's number", "interval", "analysed by", "allowed to differ",
    "not recorded", "seed",
})  # fmt: skip


def entry_of(content: Mapping[str, Any], source: str, site: str, started: str) -> TrackEntry:
    """Return the entry of a report.

    Raises:
        ReportError: the report has no points, or lacks a key that this version needs.
    """
    study, rows = str(content.get("name") or ""), content["rows"]
    if not rows:
        raise ReportError(f"{source}: the report has no points: nothing can be stored")
    if not study:
        raise ReportError(f"{source}: the report does not name its study")
    by_series: dict[str, dict[str, str]] = {}
    for run in content["runs"]:
        own = run.get("conditions")
        if isinstance(own, Mapping):
            by_series.setdefault(str(run.get("series")), {}).update(
                {name: str(own[name]) for name in MUST_MATCH if own.get(name) not in (None, "")}
            )
    return TrackEntry(
        schema=TRACK_SCHEMA,
        site=site,
        study=study,
        started=started,
        conditions=dict(_conditions(content.get("provenance") or {})),
        points=tuple(_point(row, by_series, source) for row in rows),
    )


def _conditions(facts: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in sorted(facts):
        if name not in _OF_STUDY:
            yield name, tuple(sorted(str(one["value"]) for one in facts[name]))


def _point(
    row: Mapping[str, Any], by_series: Mapping[str, dict[str, str]], source: str
) -> TrackPoint:
    absent = [key for key in ("series", "basis", "n_ok", *SIZES) if key not in row]
    if absent:
        raise ReportError(f"{source}: rows: a point has no {absent[0]!r}")
    series, sizes = str(row["series"]), {name: row[name] for name in SIZES}
    work = dict(by_series.get(series, {}))
    if row.get("regime") not in (None, "", "unknown"):
        work["regime"] = str(row["regime"])
    # At one size an equal batch is equal work, in strong and in weak scaling.
    if row.get(_BATCH):
        work[_BATCH] = f"{row[_BATCH]:g}"
    return TrackPoint(
        series=series,
        **sizes,
        basis=str(row["basis"]),
        work=work,
        n_ok=row["n_ok"],
        n_submitted=row.get("n_submitted", row["n_ok"]),
        not_ok=str(row.get("not_ok") or ""),
        values=dict(_values(row)),
    )


def _values(row: Mapping[str, Any]) -> Iterator[tuple[str, TrackValue]]:
    for name in _VALUES:
        if row.get("is_baseline") and name in _OF_BASELINE:
            continue
        own: Any = row.get(name)
        nested = isinstance(own, Mapping)
        low, high = ("low", "high") if nested else (f"{name}_low", f"{name}_high")
        value, limits = (own.get("value"), own) if nested else (own, row)
        if isinstance(value, (int, float)) and usable(value):
            yield name, TrackValue(value=value, low=limits.get(low), high=limits.get(high))
