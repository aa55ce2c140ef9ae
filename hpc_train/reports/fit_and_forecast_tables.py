"""Fitted laws -> their table, and the rows of a forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from hpc_train.jobs.study import ALONE
from hpc_train.reports.point_and_series_names import (
    SizeUnit,
    by_series,
    series_heading,
    short_series,
    size_unit,
    under,
)
from hpc_train.reports.report import Cell, Column, Report, ReportTable
from hpc_train.reports.study_tables import before_runs
from hpc_train.reports.value_format import ABSENT, Row, significant, whole
from hpc_train.scaling.scaling_fits import LAW_NAMES, LEAST_SIZES, REACH, CurvePoint, Fit, Parameter

LEAST_PLAIN = 1e-3
NOT_SHOWN = "Laws that are not shown: "
BEYOND = "beyond the measurements"
MOST_REASONS = 8
BEYOND_REACH = (
    "Forecasts end at {reach:g} times the largest measured size instead of {forecast:g}: beyond, "
    "they are not reliable; measure a larger size."
)
FORMULAS = (
    "Laws are fitted to the points' speedups at q times the baseline's resources: Amdahl S = L/(f "
    "+ (1-f)/q); Gustafson S = L(q - f'(q-1)); USL S = L q/(1 + a(q-1) + b q(q-1)). L is the law's "
    "speedup at q = 1; residual is the root mean square of the relative residuals; p is that of an "
    "F test of lack of fit, -- without repetitions. A law with p below 0.05 (without repetitions: "
    "with a residual above 10 %) is not shown; of two that fit, only that with the lower AICc is."
)


def with_laws(report: Report, laws: Sequence[Fit], forecast: float | None = None) -> Report:
    """Return the report with the law of each series, and with forecasts if requested.

    A note gives the laws that are not shown, with reasons. JSON has every law.
    """
    points = report.tables[0].records
    table = _laws(laws, points)
    tables, notes = [table], [*report.notes]
    if forecast is not None:
        tables.append(_forecast(laws, points))
        if forecast > REACH:
            notes.append(BEYOND_REACH.format(forecast=forecast, reach=REACH))
    # Too few sizes are no result of a test.
    if table.rows or any(
        law.points and not law.refused.startswith(f"needs {LEAST_SIZES[law.law]} ") for law in laws
    ):
        refusals = _refusals(laws)
        notes += [FORMULAS, *_remarks(laws), *([f"{NOT_SHOWN}{refusals}."] if refusals else [])]
    elif forecast is not None:
        notes.append(f"no law is fitted: {_refusals(laws)}.")
    return msgspec.structs.replace(report, tables=before_runs(report, tables), notes=tuple(notes))


def _laws(laws: Sequence[Fit], points: Sequence[Row]) -> ReportTable:
    unit, axis = size_unit(points), series_heading(points)
    columns = (
        Column(key="series", heading=axis or "series", align="left"),
        Column(key="law", heading="law", align="left"),
        Column(key="points", heading="points", drop=1),
        Column(key="largest_q", heading=f"largest\n{unit.plural}", drop=4),
        Column(key="parameters", heading="parameters [95 %]", align="left", prose=True),
        Column(key="rms", heading="residual\n[%]", drop=2),
        Column(key="lack_of_fit_p", heading="lack of\nfit p", drop=3),
        Column(key="peak", heading=f"peak\n[{unit.plural}, 95 %]", align="left", prose=True),
    )
    bases = _bases(points, unit)
    rows = [_row(law, bases.get(law.series, 1.0), axis) for law in laws if not law.refused]
    # A single series has no name.
    skip = 1 if {law.series for law in laws} <= {ALONE} else 0
    return ReportTable(
        title="Laws",
        columns=columns[skip:],
        rows=tuple(row[skip:] for row in rows),
        key="laws",
        records=tuple(map(_record, laws)),
    )


def _bases(points: Sequence[Row], unit: SizeUnit) -> dict[str, float]:
    """Return the size of each series at q = 1."""
    known = (row for row in points if row["ideal"] and row[unit.key])
    return {row["series"]: row[unit.key] / row["ideal"] for row in known}


def _row(law: Fit, base: float, axis: str) -> tuple[Cell, ...]:
    p = ABSENT if law.lack_of_fit_p is None else f"{law.lack_of_fit_p:.2f}"
    texts = (
        short_series(law.series, axis),
        LAW_NAMES[law.law],
        str(law.points),
        whole(law.largest_q * base),
        "; ".join(map(_named, law.parameters)),
        f"{100 * law.rms:.2g}",
        p,
        _peak(law, base),
    )
    return tuple(Cell(text=text) for text in texts)


def _refusals(laws: Sequence[Fit]) -> str:
    """Return `USL: needs 6 sizes, there are 3; Amdahl (spawn, srun): does not fit: ...`."""
    every = dict.fromkeys(law.series for law in laws)
    kinds: dict[tuple[str, str], list[Fit]] = {}
    for law in laws:
        if law.refused:
            kinds.setdefault((law.law, law.refused.partition(": ")[0]), []).append(law)
    texts = []
    for (_, kind), own in kinds.items():
        where = "" if len(own) == len(every) else f" ({_some([law.series for law in own])})"
        same = len({law.refused for law in own}) == 1
        detail = own[0].refused.removeprefix(kind)
        example = detail if same else f", for example{under(own[0].series)}{detail}"
        texts.append(f"{LAW_NAMES[own[0].law]}{where}: {kind}{example}")
    return "; ".join(texts)


def _some(series: Sequence[str]) -> str:
    more = f" and {len(series) - MOST_REASONS} more" if len(series) > MOST_REASONS else ""
    return ", ".join(series[:MOST_REASONS]) + more


def _record(law: Fit) -> dict[str, Any]:
    """Return the row for JSON; the curve is in the data of the figure."""
    plain = msgspec.to_builtins(law)
    del plain["curve"]
    return {**plain, "parameters": {one.name: _limits(one) for one in law.parameters},
            "peak": _limits(law.peak) if law.peak else None}  # fmt: skip


def _limits(one: Parameter) -> dict[str, float | None]:
    return {"value": one.value, "low": one.low, "high": one.high}


def _named(one: Parameter) -> str:
    return f"{one.name} {_with_limits(one.value, one.low, one.high)}"


def _with_limits(value: float, low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return f"{_short(value)} [no bound]"
    return f"{_short(value)} [{_short(low or 0)}, {'no bound' if high is None else _short(high)}]"


def _short(value: float) -> str:
    """Return three significant digits, because the coherence of a large machine is small."""
    return f"{value:.2e}" if 0 < abs(value) < LEAST_PLAIN else significant(value, 3)


def _peak(law: Fit, base: float) -> str:
    if law.peak is not None:
        ends = (None if end is None else end * base for end in (law.peak.low, law.peak.high))
        return _with_limits(law.peak.value * base, *ends)
    return f"none: {law.no_peak}" if law.no_peak else ABSENT


def _remarks(laws: Sequence[Fit]) -> Iterator[str]:
    for series, own in by_series(laws, attrgetter("series")).items():
        for note in dict.fromkeys(note for law in own if not law.refused for note in law.notes):
            yield f"laws{under(series)}: {note}."


def _forecast(laws: Sequence[Fit], points: Sequence[Row]) -> ReportTable:
    unit = size_unit(points)
    bases = _bases(points, unit)
    found = [(law, point) for law in laws for point in _beyond(law)]
    names = ("series", "law", "q", "speedup", "where")
    heads = ("series", "law", unit.plural, "speedup [band]", "where")
    skip = 1 if {law.series for law, _ in found} <= {ALONE} else 0
    aligned = [
        Column(key=key, heading=head, align="right" if key in ("q", "speedup") else "left")
        for key, head in zip(names, heads, strict=True)
    ]
    rows = tuple(
        tuple(
            Cell(text=text)
            for text in (
                law.series, LAW_NAMES[law.law], whole(point.q * bases.get(law.series, 1.0)),
                _with_limits(point.speedup, point.low, point.high), BEYOND,
            )
        )[skip:]
        for law, point in found
    )  # fmt: skip
    records = tuple(
        {
            "series": law.series,
            "law": law.law,
            "q": point.q,
            "speedup": {"value": point.speedup, "low": point.low, "high": point.high},
            "measured": point.measured,
        }
        for law, point in found
    )
    return ReportTable(
        title="Forecast", columns=tuple(aligned[skip:]), rows=rows, key="forecast", records=records
    )


def _beyond(law: Fit) -> list[CurvePoint]:
    """Return the points at doublings of the largest measured size, and the last one."""
    curve = {point.q: point for point in law.curve if not point.measured}
    doublings = [law.largest_q * 2.0**power for power in range(1, 64)]
    last = max(curve, default=0.0)
    return [curve[q] for q in dict.fromkeys([*(q for q in doublings if q in curve), last]) if q]
