"""Strategies, laws, a target and refused points -> further tables of a report, with notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from hpc_train.jobs.study import ALONE, axis_name
from hpc_train.reports.report import Column, Report, ReportTable, Shown, table_of, words_of
from hpc_train.reports.words import (
    ABSENT,
    Row,
    counted,
    first_of,
    fixed,
    grouped,
    series_heading,
    short_series,
    significant,
    size_unit,
    under,
    whole,
)
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.report_options import Target
from hpc_train.scaling.scaling_fits import LAW_NAMES, LEAST_SIZES, REACH, CurvePoint, Fit, Parameter

STRATEGIES = (
    "Strategies: medians over the runs; speedup = ratio of the throughputs to single with the same "
    "model, data, precision and global batch; efficiency = speedup/ranks. Loss difference: of the "
    "last epoch, as a fraction of the loss of single. Idle: the share of a step in which a "
    "pipeline's rank waits, by the formula of its schedule. Exposed communication: the share of a "
    "step in which a rank only waits for communication, mean of the ranks and profiled steps.",
    "Memory and traffic: peak = resident set of a process, torch included, on a CPU; tensors, "
    "CUDA's context and NCCL on a GPU; "
    "states = parameters, gradients and optimiser state, mean of the ranks; sent = bytes of a rank "
    "in a step, measured at the interfaces of the node, which other programs may use as well. "
    "Formulas: ZeRO (SC20) and Megatron-LM (SC21); gloo's reduce-scatter counts twice.",
)
# Column, heading, factor, and decimals (None: four significant digits).
_SPEED: tuple[tuple[str, str, float, int | None], ...] = (
    ("step_time_s", "step\n[ms]", 1000, None),
    ("samples_per_second", "samples/s", 1, None),
    ("speedup", "speedup", 1, 2),
    ("efficiency", "efficiency\n[%]", 100, 1),
    ("mfu", "MFU\n[%]", 100, 1),
    ("exposed_communication", "exposed\ncomm. [%]", 100, 1),
    ("idle", "idle\n[%]", 100, 1),
)
_MEMORY: tuple[tuple[str, str, float, int | None], ...] = (
    ("memory_gib", "peak\n[MiB]", 1024, None),
    ("state_memory", "states\n[MiB]", 1024, None),
    ("expected_state_memory", "formula\n[MiB]", 1024, None),
    ("sent_bytes", "sent/step\n[MiB]", 1 / 2**20, None),
    ("expected_sent_bytes", "formula\n[MiB]", 1 / 2**20, None),
)
LEAST_PLAIN = 1e-3
FORMULAS = (
    "Laws are fitted to the points' speedups at q times the baseline's resources: Amdahl S = L/(f "
    "+ (1-f)/q); Gustafson S = L(q - f'(q-1)); USL S = L q/(1 + a(q-1) + b q(q-1)). L is the law's "
    "speedup at q = 1; residual is the root mean square of the relative residuals; p is that of an "
    "F test of lack of fit, -- without repetitions. A law with p below 0.05 (without repetitions: "
    "with a residual above 10 %) is not shown; of two that fit, only that with the lower AICc is."
)
BEYOND_REACH = (
    "Forecasts end at {reach:g} times the largest measured size instead of {forecast:g}: beyond, "
    "they are not reliable; measure a larger size."
)
TARGET = (
    "Time to {target}: until the first evaluation that reaches it; validation values are "
    "preferred. Evaluations without a step number are assumed to be evenly spaced. A run that "
    "did not reach the target has no time, which is not extrapolated. Without start-up, time = "
    "samples/throughput; with start-up, it includes what the warm-up (initialisation, compilation, "
    "first steps) took beyond its usual steps, and is -- where that was not recorded. Both include "
    "evaluations if the throughput does. A run without a throughput has its share of the time to "
    "train, with start-up. Of several runs it is the mean. "
    "Statistical efficiency = samples to target at the baseline / at the point."
)


def with_strategies(report: Report, study: ExpectedStudy, rows: Sequence[dict[str, Any]]) -> Report:
    """Return the report with the tables of the strategies, and of the points that cannot run."""
    tables, notes = [], []
    if rows:
        loss: Shown = (
            Column("loss_difference", "loss\ndifference"),
            lambda row: ABSENT if (x := row["loss_difference"]) is None else f"{x:.1e}",
        )
        speed = [*map(_scaled, _SPEED), loss]
        speed = [one for one in speed if any(row[one[0].key] is not None for row in rows)]
        shown: list[Shown] = [
            (Column("strategy", "strategy", "left"), _strategy),
            (Column("ranks", "ranks"), lambda row: whole(row["ranks"])),
        ]
        tables = [
            table_of("Strategies", "strategies", [*shown, *speed], rows),
            table_of(
                "Memory and traffic of a rank", "strategy_memory",
                [*shown, *map(_scaled, _MEMORY)], rows,
            ),
        ]  # fmt: skip
        reasons = grouped((row for row in rows if row["reason"]), lambda row: str(row["reason"]))
        notes = [*STRATEGIES]
        for reason, own in reasons.items():
            where = (f"{_strategy(row)} on {counted(row['ranks'], 'rank')}" for row in own)
            notes.append(f"No speedup: {', '.join(where)}: {reason}.")
    if study.refused:
        refused = [
            {
                "point": ", ".join(f"{axis_name(key)}={value}" for key, value in one.axes.items()),
                "reason": one.reason,
            }
            for one in study.refused
        ]
        words = words_of({"point": "point", "reason": "reason"}, {"reason"})
        tables.append(table_of("Points that cannot run", "refused", words, refused))
    return report.extended(tables, notes)


def _scaled(how: tuple[str, str, float, int | None]) -> Shown:
    key, heading, factor, decimals = how

    return Column(key, heading), lambda row: fixed(row[key], decimals, factor)


def _strategy(row: Row) -> str:
    """Return `hsdp 2,4`, `pipeline GPipe`."""
    return " ".join(filter(None, (row["strategy"], row["mesh"], row["schedule"])))


def with_laws(report: Report, laws: Sequence[Fit], forecast: float | None = None) -> Report:
    """Return the report with the law of each series, and with forecasts if requested.

    A note gives the laws that are not shown, with reasons. JSON has every law.
    """
    points = report.tables[0].records
    unit, axis = size_unit(points), series_heading(points)
    known = (row for row in points if row["ideal"] and row[unit.key])
    bases = {row["series"]: row[unit.key] / row["ideal"] for row in known}
    fitted = [law for law in laws if not law.refused]
    alone = {law.series for law in laws} <= {ALONE}
    shown: list[Shown] = [
        (
            Column("series", axis or "series", "left"),
            lambda law: short_series(law.series, axis),
        ),
        (Column("law", "law", "left"), lambda law: LAW_NAMES[law.law]),
        (Column("points", "points", drop=1), lambda law: str(law.points)),
        (
            Column("largest_q", f"largest\n{unit.plural}", drop=4),
            lambda law: whole(law.largest_q * bases.get(law.series, 1.0)),
        ),
        (
            Column("parameters", "parameters [95 %]", "left", prose=True),
            lambda law: "; ".join(
                f"{one.name} {_with_limits(one.value, one.low, one.high)}" for one in law.parameters
            ),
        ),
        (Column("rms", "residual\n[%]", drop=2), lambda law: f"{100 * law.rms:.2g}"),
        (
            Column("lack_of_fit_p", "lack of\nfit p", drop=3),
            lambda law: fixed(law.lack_of_fit_p, 2),
        ),
        (
            Column("peak", f"peak\n[{unit.plural}, 95 %]", "left", prose=True),
            lambda law: _peak(law, bases.get(law.series, 1.0)),
        ),
    ]
    tables = [table_of("Laws", "laws", shown[alone:], fitted, tuple(map(_law_record, laws)))]
    notes = []
    if forecast is not None:
        tables.append(_forecast(laws, bases, unit.plural))
        if forecast > REACH:
            notes.append(BEYOND_REACH.format(forecast=forecast, reach=REACH))
    refusals = _refusals(laws)
    # Too few sizes are no result of a test.
    if fitted or any(
        law.points and not law.refused.startswith(f"needs {LEAST_SIZES[law.law]} ") for law in laws
    ):
        of_series = grouped(fitted, attrgetter("series"))
        remarks = [
            f"laws{under(series)}: {note}."
            for series, own in of_series.items()
            for note in dict.fromkeys(note for law in own for note in law.notes)
        ]
        hidden = [f"Laws that are not shown: {refusals}."] if refusals else []
        notes += [FORMULAS, *remarks, *hidden]
    elif forecast is not None:
        notes.append(f"no law is fitted: {refusals}.")
    return report.extended(tables, notes)


def _forecast(laws: Sequence[Fit], bases: Mapping[str, float], sizes: str) -> ReportTable:
    """Return the points beyond the measurements; `bases` are the sizes of the series at q = 1."""
    found = [(law, point) for law in laws for point in _beyond(law)]
    records = [
        {
            "series": law.series,
            "law": law.law,
            "q": point.q,
            "speedup": _limits(point, point.speedup),
            "measured": point.measured,
        }
        for law, point in found
    ]
    alone = {law.series for law, _ in found} <= {ALONE}
    shown: list[Shown] = [
        (Column("series", "series", "left"), lambda one: one[0].series),
        (Column("law", "law", "left"), lambda one: LAW_NAMES[one[0].law]),
        (Column("q", sizes), lambda one: whole(one[1].q * bases.get(one[0].series, 1.0))),
        (
            Column("speedup", "speedup [band]"),
            lambda one: _with_limits(one[1].speedup, one[1].low, one[1].high),
        ),
        (Column("where", "where", "left"), lambda one: "beyond the measurements"),
    ]
    return table_of("Forecast", "forecast", shown[alone:], found, records)


def _refusals(laws: Sequence[Fit]) -> str:
    """Return `USL: needs 6 sizes, there are 3; Amdahl (spawn, srun): does not fit: ...`."""
    every = dict.fromkeys(law.series for law in laws)
    refused = (law for law in laws if law.refused)
    kinds = grouped(refused, lambda law: (law.law, law.refused.partition(": ")[0]))
    texts = []
    for (_, kind), own in kinds.items():
        where = "" if len(own) == len(every) else f" ({first_of(law.series for law in own)})"
        same = len({law.refused for law in own}) == 1
        detail = own[0].refused.removeprefix(kind)
        example = detail if same else f", for example{under(own[0].series)}{detail}"
        texts.append(f"{LAW_NAMES[own[0].law]}{where}: {kind}{example}")
    return "; ".join(texts)


def _law_record(law: Fit) -> dict[str, Any]:
    """Return the row for JSON; the curve is in the data of the figure."""
    plain = msgspec.to_builtins(law)
    del plain["curve"]
    parameters = {one.name: _limits(one, one.value) for one in law.parameters}
    peak = _limits(law.peak, law.peak.value) if law.peak else None
    return {**plain, "parameters": parameters, "peak": peak}


def _limits(one: Parameter | CurvePoint, value: float) -> dict[str, float | None]:
    return {"value": value, "low": one.low, "high": one.high}


def _with_limits(value: float, low: float | None, high: float | None) -> str:
    upper = "no bound" if high is None else _short(high)
    ends = upper if low is None and high is None else f"{_short(low or 0)}, {upper}"
    return f"{_short(value)} [{ends}]"


def _short(value: float) -> str:
    """Return three significant digits, because the coherence of a large machine is small."""
    return f"{value:.2e}" if 0 < abs(value) < LEAST_PLAIN else significant(value, 3)


def _peak(law: Fit, base: float) -> str:
    if law.peak is not None:
        ends = (None if end is None else end * base for end in (law.peak.low, law.peak.high))
        return _with_limits(law.peak.value * base, *ends)
    return f"none: {law.no_peak}" if law.no_peak else ABSENT


def _beyond(law: Fit) -> list[CurvePoint]:
    """Return the points at the next doubling of the largest measured size, and the last one."""
    curve = {point.q: point for point in law.curve if not point.measured}
    ends = dict.fromkeys((law.largest_q * 2.0, max(curve, default=0.0)))
    return [curve[q] for q in ends if q in curve]


def with_target(report: Report, rows: Sequence[dict[str, Any]], target: Target) -> Report:
    """Return the report with a table of samples and time to the target of each point."""

    def missing(row: Row) -> str:
        return "" if row["state"] == "reached" else str(row["state"])

    def time(key: str) -> Any:
        return lambda row: significant(row[key]) if row[key] is not None else missing(row) or ABSENT

    columns: list[Shown] = [
        (Column("series", "series", "left"), lambda row: str(row["series"])),
        (Column("nodes", "nodes", drop=2), lambda row: whole(row["nodes"])),
        (Column("ranks", "ranks"), lambda row: whole(row["ranks"])),
        (Column("global_batch", "batch", drop=3), lambda row: whole(row["global_batch"])),
        (Column("n_reached", "reached\n/n"), lambda row: f"{row['n_reached']}/{row['n_ok']}"),
        (
            Column("samples_to_target", "samples to\ntarget", drop=4),
            lambda row: missing(row) or significant(row["samples_to_target"]),
        ),
        (
            Column("time_to_target_s", "time to\ntarget [s]\nwith\nstart-up"),
            time("time_to_target_s"),
        ),
        (
            Column(
                "time_to_target_without_startup_s", "time to\ntarget [s]\nwithout\nstart-up", drop=2
            ),
            time("time_to_target_without_startup_s"),
        ),
        (Column("startup_s", "start-up\n[s]", drop=1), lambda row: significant(row["startup_s"])),
        (
            Column("statistical_efficiency", "statistical\nefficiency [%] [95 %]"),
            lambda row: _ratio(row["statistical_efficiency"]),
        ),
    ]
    alone = {row["series"] for row in rows} <= {ALONE}
    table = table_of(f"Time to {target}", "target", columns[alone:], rows)
    notes = [TARGET.format(target=target)]
    every = [run for row in rows for run in row["runs"]]
    unknown = [run["run_id"] for run in every if run["state"] == "not measured"]
    if unknown:
        notes.append(
            f"not measured: {first_of(unknown, most=1)} did not print {target.metric} and the "
            "global batch; print an event with step and global_batch_size (hpctrain help events)."
        )
    conditions = {**report.conditions, "target": str(target)}
    return msgspec.structs.replace(report.extended([table], notes), conditions=conditions)


def _ratio(found: Mapping[str, float | None] | None) -> str:
    if found is None:
        return ABSENT
    value, low, high = (fixed(found[end], 0, 100) for end in ("value", "low", "high"))
    return value if ABSENT in (low, high) else f"{value} [{low}, {high}]"
