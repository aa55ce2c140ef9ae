"""Plain rows -> the tables of a report: points, series, runs, strategies, laws, a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import nan
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from hpc_train.base.metrics import BASES, BASIS_COLUMNS, Metric, TextColumn, in_text_order
from hpc_train.jobs.study import ALONE, axis_name
from hpc_train.reports.report import (
    ABSENT,
    LEVEL,
    OK,
    Column,
    Report,
    ReportTable,
    Row,
    Shown,
    column_of,
    counted,
    first_of,
    fixed,
    for_programs,
    grouped,
    has_own_baselines,
    levels_word,
    names,
    nested,
    one_size,
    plain_rows,
    series_heading,
    short_series,
    significant,
    size_unit,
    table_of,
    under,
    whole,
    with_limits,
    words_of,
)
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.measurements import Target
from hpc_train.scaling.scaling_fits import LAW_NAMES, LEAST_SIZES, Fit, Parameter

if TYPE_CHECKING:
    import pandas as pd

SIZE_COLUMNS = {
    "nodes": "nodes",
    "gpus_per_node": "gpus/\nnode",
    "tasks_per_node": "tasks/\nnode",
    "gpus": "gpus",
    "ranks": "ranks",
}
SIZES = (
    "series", "nodes", "gpus_per_node", "tasks_per_node", "ranks", "global_batch",
    "tokens_per_step", "gpus",
)  # fmt: skip
SIZE_WORDS = {
    "nodes": ("node", ""),
    "gpus_per_node": ("GPU", " per node"),
    "tasks_per_node": ("task", " per node"),
    "cpus_per_task": ("CPU", " per task"),
    "global_batch": ("sample", " in a global batch"),
    "tokens_per_step": ("token", " in a step"),
}
RATIOS = ("speedup", "ideal", "efficiency")
# Columns that are dropped first if the table is too wide, unless speedup is computed from them.
LESS = (
    "nodes", "time_to_train_s", "epoch_time_s", "step_time_s", "ideal",
    "tokens_per_second", "samples_per_second", "accuracy",
)  # fmt: skip
FASTER, NO_RESULT = "faster", "no result"
ONE_RUN, NO_SPREAD = "n=1: no verdict", "no spread: no verdict"
SIGNIFICANT = {
    FASTER: "yes",
    "no difference seen at this n": "no",
    ONE_RUN: "n=1",
    NO_SPREAD: "no spread",
}
METHOD = (
    "Comparison at each size: ratio of the fastest series to another one, of geometric means over "
    "the runs, with Welch's interval at the level at which its row is decided, {levels} (Holm: "
    "{pairs} pairs of series are compared, because the fastest is known only from the data, and "
    "fewer after each decision; all decisions together hold at {confidence}). Series are compared "
    "if they agree in model, data and batch, as far as these are recorded."
)


def points_table(points: Sequence[Row], *, wide: bool = False) -> ReportTable:
    """Return the table of points, without constant columns.

    Where it is too wide, columns that speedup is not computed from are dropped; a `wide` table
    keeps every column that has a value.
    """
    every = ((one, [text(row) for row in points]) for one, text in _columns(points, wide))
    shown = [(one, cells) for one, cells in every if _is_needed(one.key, cells, points, wide=wide)]
    needed = {BASIS_COLUMNS[row["basis"]] for row in points if not BASES[row["basis"]].is_rate}
    needed |= set() if follow_from_unit(points) else {"nodes"}
    order = {key: place for place, key in enumerate(LESS, start=1) if key not in needed}
    return ReportTable(
        title="Points",
        columns=tuple(replace(one, drop=0 if wide else order.get(one.key, 0)) for one, _ in shown),
        rows=tuple(zip(*(cells for _, cells in shown), strict=True)),
        key="rows",
        records=tuple(map(nested, points)),
    )


def _columns(points: Sequence[Row], wide: bool) -> list[Shown]:
    """Return the columns that a reader needs, or every one, in order of importance."""
    words = {
        "level": f"[{LEVEL}]",
        "own": "own-series\n" if has_own_baselines(points) else "",
        "items": " or ".join(dict.fromkeys(BASES[row["basis"]].counted for row in points)),
    }

    def of_metric(metric: Metric, how: TextColumn) -> Shown:
        heading = (how.wide_heading if wide else "") or how.heading
        column = Column(metric.key, heading.format(**words))
        if metric.key == "accuracy":
            return column, _accuracy
        if how.whole:
            return column, lambda row: whole(row.get(metric.key))
        limits = "{level}" in heading
        return column, lambda row: with_limits(
            row, metric.key, how.decimals, how.factor, limits=limits
        )

    batch, *others = (
        of_metric(one, one.text)
        for one in in_text_order()
        if one.text and (wide or one.text.compact)
    )
    axis = series_heading(points)
    regime: Shown = (Column("regime", "regime", "left"), lambda row: row["regime"] or ABSENT)
    per_rank: Shown = (
        Column("micro_batch", "batch/\nrank"),
        lambda row: whole((row["global_batch"] or nan) / (row["ranks"] or nan)),
    )
    return [
        column_of("series", axis or "series", partial(short_series, heading=axis), align="left"),
        *([regime] if wide else []),
        *size_columns(SIZE_COLUMNS),
        batch,
        *([per_rank] if wide else []),
        (Column("n_ok", "runs\nok"), lambda row: f"{row['n_ok']}/{row['n_submitted']}"),
        *others,
        (Column("transport", "transport", "left"), lambda row: row.get("transport") or ABSENT),
        (Column("flags", "flags", "left"), _flags),
    ]


def size_columns(keys: Iterable[str]) -> list[Shown]:
    """Return columns of sizes."""
    return [column_of(key, SIZE_COLUMNS[key], whole) for key in keys]


def _accuracy(row: Row) -> str:
    change, shown = row["accuracy_change_pp"], fixed(row["accuracy"], 1, 100)
    if row["accuracy"] is None or change is None or row["is_baseline"]:
        return shown
    # No -0.0.
    return f"{shown} ({round(change, 1) + 0.0:+.1f})"


def _flags(row: Row) -> str:
    codes = dict.fromkeys(flag.code.value for flag in row["flags"])
    return ", ".join([*codes, *([row["not_ok"]] if row["not_ok"] else [])]) or ABSENT


def runs_table(runs: pd.DataFrame) -> ReportTable:
    """Return the table of the runs that are not ok; `records` holds every run."""
    records = tuple(map(for_programs, plain_rows(runs)))
    failed = [row for row in records if row["state"] != OK]
    columns = words_of({"run_id": "run", "state": "state", "problem": "problem"}, {"problem"})
    return table_of("Runs without a result", "runs", columns, failed, records)


def constants(points: Sequence[Row]) -> str:
    """Return `1 node, 4 tasks per node` for the sizes that are constant."""
    said = []
    for name, (word, after) in SIZE_WORDS.items():
        # A value that a point with a result did not record may differ.
        values = {row[name] for row in points if row["n_ok"] or row[name] is not None}
        if len(values) == 1 and (value := values.pop()) is not None:
            said.append(f"{counted(value, word)}{after}" if value else f"no {word}s")
    return ", ".join(said)


def _is_needed(key: str, cells: Sequence[str], points: Sequence[Row], *, wide: bool) -> bool:
    """Whether a column is not constant, or has a value that is shown nowhere else."""
    if key == "n_ok":
        return True
    if key in RATIOS:
        compared = any(row["speedup"] is not None and not row["is_baseline"] for row in points)
        return compared or not one_size(points)
    values = set(cells)
    if key == "ranks" or (key in ("nodes", "gpus") and not wide):
        return len(values) > 1 and (wide or _is_needed_size(key, points))
    known = values - {ABSENT}
    if key not in SIZES or wide:
        return bool(known)
    silent = any(row["n_ok"] and cell == ABSENT for row, cell in zip(points, cells, strict=True))
    new = not key.endswith("_per_node") or _is_needed_size(key, points)
    return new and (len(known) > 1 or bool(known and silent))


def _is_needed_size(key: str, points: Sequence[Row]) -> bool:
    """Whether it is the unit of the report, or not the same number as that in each row."""
    unit = size_unit(points).key
    new = any(row[key] != row[unit] for row in points)
    if key == "ranks":
        others = ("nodes", "gpus_per_node", "tasks_per_node")
        new = new and not any(len({row[name] for row in points}) > 1 for name in others)
    return key == unit or (new and key != "gpus")


def follow_from_unit(points: Sequence[Row]) -> bool:
    """Whether the nodes follow from the unit: `constants` says how many there are on a node."""
    unit = size_unit(points).key
    ratios = {row[unit] / row["nodes"] for row in points if row["nodes"] and row[unit]}
    return len(ratios) == 1 and all(row["nodes"] and row[unit] for row in points)


def absent_notes(points: Sequence[Row]) -> Iterator[str]:
    """Yield each reason why points have no ratio, with these points."""
    name = names(points)
    lacking = (row for row in points if row["n_ok"] and row["note"])
    for reason, rows in grouped(lacking, lambda row: str(row["note"])).items():
        where = "every point" if len(rows) == len(points) > 1 else first_of(map(name, rows))
        yield f"{ABSENT}: {where}: {reason}."


def fastest_table(rows: Sequence[Row], points: Sequence[Row]) -> ReportTable:
    """Return a row for each size and each series that is compared with the fastest one there."""
    name, unit = partial(short_series, heading=series_heading(points)), size_unit(points).key
    headings = {BASES[row["basis"]].in_heading for row in rows}
    result = headings.pop() if len(headings) == 1 else "result"
    level = levels_word(rows)
    alone = follow_from_unit(points)

    def differs(key: str) -> bool:
        """Whether it is the unit of the report, or does not follow from that."""
        is_unit = key == unit
        return is_unit if key in ("gpus", "ranks") or alone else len({p[key] for p in points}) > 1

    columns: list[Shown] = [
        *size_columns(filter(differs, SIZE_COLUMNS)),
        column_of("fastest", "fastest\nseries", name, align="left"),
        column_of("value", f"its\n{result}", significant, drop=2),
        column_of("series", "compared\nwith", lambda s: name(s) if s else ABSENT, align="left"),
        column_of("other_value", f"its\n{result}", significant, drop=1),
        (Column("ratio", f"times as fast\n[{level}]"), lambda row: with_limits(row, "ratio", 3)),
        (
            Column("verdict", "significant", "left"),
            lambda row: (
                SIGNIFICANT.get(row["verdict"], row["verdict"])
                + f" ({row['not_ok']})" * (row["verdict"] == NO_RESULT and bool(row["not_ok"]))
            ),
        ),
    ]
    records = tuple(map(ratio_record, rows))
    return table_of("Comparison at each size", "comparison", columns, rows, records)


def ratio_record(row: Row) -> dict[str, Any]:
    """Return the row for JSON: the ratio with its limits as one value."""
    plain = {k: v for k, v in row.items() if k not in ("ratio_low", "ratio_high")}
    ends = {end: row[f"ratio_{end}"] for end in ("low", "high")}
    return plain | {"ratio": None if row["ratio"] is None else {"value": row["ratio"], **ends}}


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
TARGET = (
    "Time to {target}: until the first evaluation that reaches it; validation values are "
    "preferred. Evaluations without a step number are assumed to be evenly spaced. A run that "
    "did not reach the target has no time, which is not extrapolated. time = samples/throughput, "
    "without start-up, with evaluations if the throughput has them; a run without a throughput has "
    "its share of the time to train. Of several runs it is the mean."
)


def with_strategies(report: Report, study: ExpectedStudy, rows: Sequence[dict[str, Any]]) -> Report:
    """Return the report with the tables of the strategies, and of the points that cannot run."""
    tables, notes = [], []
    if rows:
        loss = column_of(
            "loss_difference", "loss\ndifference", lambda x: ABSENT if x is None else f"{x:.1e}"
        )
        speed = [*map(_scaled, _SPEED), loss]
        speed = [one for one in speed if any(row[one[0].key] is not None for row in rows)]
        first = [
            (Column("strategy", "strategy", "left"), _strategy), column_of("ranks", "ranks", whole)
        ]  # fmt: skip
        tables = [
            table_of("Strategies", "strategies", [*first, *speed], rows),
            table_of(
                "Memory and traffic of a rank", "strategy_memory",
                [*first, *map(_scaled, _MEMORY)], rows,
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
    return column_of(key, heading, lambda value: fixed(value, decimals, factor))


def _strategy(row: Row) -> str:
    """Return `hsdp 2,4`, `pipeline GPipe`."""
    return " ".join(filter(None, (row["strategy"], row["mesh"], row["schedule"])))


def with_laws(report: Report, laws: Sequence[Fit]) -> Report:
    """Return the report with the law of each series.

    A note gives the laws that are not shown, with reasons. JSON has every law.
    """
    points = report.tables[0].records
    unit, axis = size_unit(points), series_heading(points)
    known = (row for row in points if row["ideal"] and row[unit.key])
    bases = {row["series"]: row[unit.key] / row["ideal"] for row in known}
    fitted = [law for law in laws if not law.refused]
    alone = {law.series for law in laws} <= {ALONE}
    columns: list[Shown] = [
        (Column("series", axis or "series", "left"), lambda law: short_series(law.series, axis)),
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
    table = table_of("Laws", "laws", columns[alone:], fitted, tuple(map(_law_record, laws)))
    notes = []
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
    return report.extended([table], notes)


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
    parameters = {one.name: _limits(one) for one in law.parameters}
    peak = _limits(law.peak) if law.peak else None
    return {**plain, "parameters": parameters, "peak": peak}


def _limits(one: Parameter) -> dict[str, float | None]:
    return {"value": one.value, "low": one.low, "high": one.high}


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


def with_target(report: Report, rows: Sequence[dict[str, Any]], target: Target) -> Report:
    """Return the report with a table of samples and time to the target of each point."""

    def value(key: str, heading: str, drop: int = 0) -> Shown:
        """Return the column of what a point that missed the target does not have."""

        def text(row: Row) -> str:
            missed = row[key] is None and row["state"] != "reached"
            return str(row["state"]) if missed else significant(row[key])

        return Column(key, heading, drop=drop), text

    columns: list[Shown] = [
        column_of("series", "series", align="left"),
        column_of("nodes", "nodes", whole, drop=2),
        column_of("ranks", "ranks", whole),
        column_of("global_batch", "batch", whole, drop=3),
        (Column("n_reached", "reached\n/n"), lambda row: f"{row['n_reached']}/{row['n_ok']}"),
        value("samples_to_target", "samples to\ntarget", drop=4),
        value("time_to_target_s", "time to\ntarget [s]"),
    ]
    alone = {row["series"] for row in rows} <= {ALONE}
    table = table_of(f"Time to {target}", "target", columns[alone:], rows)
    notes = [TARGET.format(target=target)]
    if any(row["state"] == "not measured" and row["n_ok"] for row in rows):
        notes.append(
            f"not measured: a run did not print {target.metric} and the global batch; print an "
            "event with step and global_batch_size (hpctrain help events)."
        )
    conditions = {**report.conditions, "target": str(target)}
    return msgspec.structs.replace(report.extended([table], notes), conditions=conditions)
