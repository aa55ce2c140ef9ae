"""Logs of network benchmarks -> bandwidth against message size: a table, a figure, sentences.

One line for each log or, if a log has several tables (other collectives, both directions), for each
table. Values are those of the benchmark: busbw if it states one, else algbw, else a latency.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from math import ceil, log2
from typing import TYPE_CHECKING, Any

import msgspec

from hpc_train.base.values import Value
from hpc_train.reports.figures import draw_all
from hpc_train.reports.figures.canvas import (
    COLOURS,
    DASHES,
    MARKERS,
    Canvas,
    draw_title,
    log_axis,
    opened,
    plain_axis,
)
from hpc_train.reports.report import (
    ABSENT,
    OK,
    UNKNOWN,
    Column,
    Report,
    ReportOptions,
    ReportTable,
    Shown,
    one_line,
    place,
    plain_rows,
    table_of,
)
from hpc_train.reports.tables import runs_table
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.record_arrays import records_in

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.reports.report import Paper

# In order of importance: heading, unit, name and meaning of each metric.
METRICS = {
    "busbw": (
        "busbw [GB/s]", "GB/s", "bus bandwidth",
        "busbw = algbw x the factor of the collective, 2(n-1)/n for all-reduce (nccl-tests, "
        "doc/PERFORMANCE.md); the better of out of place and in place.",
    ),
    "algbw": (
        "algbw [GB/s]", "GB/s", "bandwidth",
        "algbw = bytes of a message / time, 1 GB = 1e9 B.",
    ),
    "latency": (
        "latency [us]", "us", "latency",
        "latency = time of a message or a collective, as printed.",
    ),
}  # fmt: skip
PLACEMENTS = ("out_of_place", "in_place", "")
_APART = "each process ran a test of its own, nothing was measured between processes"
_SENTENCES = 6


class BandwidthTable(Value, frozen=True, kw_only=True):
    """One table of a log: metric -> values by message size; `size` is that of the job."""

    run: str
    name: str
    size: str
    values: dict[str, dict[int, float]]

    @property
    def metric(self) -> str:
        """The most important metric that the table states."""
        return next(name for name in METRICS if name in self.values)

    @property
    def label(self) -> str:
        """The name of the log, and the size if it is known."""
        return f"{self.name}, {self.size}" if self.size else self.name


def bandwidth_report(
    study: ExpectedStudy,
    runs: pd.DataFrame,
    found: tuple[Sequence[BandwidthTable], Collection[str]],
    options: ReportOptions,
) -> Report:
    """Return the report of benchmarks; `found` are their tables, and logs without a connection."""
    lines, apart = found
    ok = runs["run_id"].isin([line.run for line in lines])
    runs = runs.assign(
        state=runs["state"].where(~ok, OK),
        problem=runs["problem"].where(~ok, "").where(~runs["run_id"].isin(apart), _APART),
    )
    metrics = list(dict.fromkeys(line.metric for line in lines))
    kind = "bandwidth" if metrics != ["latency"] else "latency"
    shown = [line for line in lines if (line.metric == "latency") is (kind == "latency")]
    title = f"{study.name}: {kind} against message size"
    said = tuple(map(_sentence, lines[:_SENTENCES]))
    if len(lines) > len(said):
        said = (*said, f"And {len(lines) - len(said)} more tables.")
    report = Report(
        title=title,
        summary=said or ("No log has a result.",),
        tables=(_table(lines), runs_table(runs)),
        notes=(*study.notes, *(METRICS[metric][3] for metric in metrics)),
        name=study.name,
        kind="Bandwidth report",
        all_met="Each log has a result.",
    )
    if not options.figures or not shown:
        return report
    draw = partial(_draw, shown, title, options.paper)
    return msgspec.structs.replace(
        report, figures=draw_all({"bandwidth": draw}, options.images, options.paper, "size")
    )


def sizes_of_jobs(runs: pd.DataFrame) -> dict[str, str]:
    """Return run -> `2 nodes, 16 ranks`, empty if that is not known."""
    sizes = {}
    for row in plain_rows(runs):
        gpus = row["nodes"] and row["gpus_per_node"] and row["nodes"] * row["gpus_per_node"]
        shown = place({"nodes": row["nodes"], "gpus": gpus, "ranks": row["ranks"]})
        sizes[row["run_id"]] = "" if shown == UNKNOWN else shown
    return sizes


def _sentence(line: BandwidthTable) -> str:
    """Return the value of the largest messages, from where half of it is reached, and the latency.

    The size of half the rate is n_1/2 of Hockney, Parallel Computing 20, 1994.
    """
    _, unit, word, _ = METRICS[line.metric]
    values = line.values[line.metric]
    parts = []
    if line.metric != "latency":
        largest = max(values)
        half = min(size for size, value in values.items() if value >= values[largest] / 2)
        between = set(values) - {largest, min(values)}
        text = f"{_shown(values[largest])} {unit} {word} at {shown_size(largest)}"
        parts.append(f"{text}, half of it from {shown_size(half)}" if half in between else text)
        best = max(values, key=lambda size: values[size])
        if values[best] > 1.05 * values[largest]:
            parts.append(f"the highest is {_shown(values[best])} at {shown_size(best)}")
    if latency := line.values.get("latency"):
        least = min(latency)
        parts.append(f"{_shown(latency[least])} us at {shown_size(least)}")
    return one_line(f"{line.label}: {'; '.join(parts)}.")


def _shown(value: float | None) -> str:
    """Return a value with at most four digits: benchmarks print two decimals of GB/s."""
    return ABSENT if value is None else f"{value:.4g}" if value < 1e4 else f"{value:.0f}"


def shown_size(size: float) -> str:
    """Return a message size as `8 B`, `64 KiB` or `1.5 GiB`."""
    power = min(4, max(0, int(log2(size)) // 10)) if size >= 1 else 0
    return f"{size / 1024**power:.4g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def _table(lines: Sequence[BandwidthTable]) -> ReportTable:
    """Return a row for each message size; of several lines, the main metric of each."""
    records: list[dict[str, Any]] = [
        {
            "run": line.run, "table": line.name, "job": line.size, "message_size": size,
            **{metric: own.get(size) for metric in METRICS if (own := line.values.get(metric))},
        }
        for line in lines
        for size in sorted(set().union(*line.values.values()))
    ]  # fmt: skip
    alone = len(lines) == 1
    shown = [
        (line, metric, f"{line.name}\n{head}" if not alone else head)
        for line in lines
        for metric, (head, *_) in METRICS.items()
        if metric in line.values and (alone or metric == line.metric)
    ]
    columns: list[Shown] = [(Column("message_size", "message"), shown_size)]
    for i, (line, metric, heading) in enumerate(shown):
        column = Column(f"{line.name}_{metric}", heading, drop=len(shown) - i)
        columns.append((column, partial(_value, line.values[metric])))
    every = sorted({row["message_size"] for row in records})
    return table_of("Message sizes", "rows", columns, every, records)


def _value(values: Mapping[int, float], size: int) -> str:
    return _shown(values.get(size))


def _draw(lines: Sequence[BandwidthTable], title: str, paper: Paper) -> Canvas:
    """Draw the bandwidth of each line over the message size, whose axis is logarithmic."""
    canvas = opened(title, paper)
    axes = canvas.figure.subplots()
    words = {METRICS[line.metric][2] for line in lines}
    _, unit, word, _ = METRICS[lines[0].metric]
    axes.set(xlabel="message size", ylabel=f"{word if len(words) == 1 else 'bandwidth'} [{unit}]")
    for number, line in enumerate(lines):
        values = line.values[line.metric]
        style = number % len(COLOURS), (number + number // len(COLOURS)) % len(MARKERS)
        axes.plot(
            [*values], [*values.values()], color=COLOURS[style[0]], marker=MARKERS[style[1]],
            ls=DASHES[style[0]], lw=1.4, ms=4.5, mec="white", mew=0.5, label=line.label,
        )  # fmt: skip
        canvas.rows.extend(
            {"table": line.name, "job": line.size, "metric": line.metric, "size": size, "value": v}
            for size, v in values.items()
        )
    every = [value for line in lines for value in line.values[line.metric].values()]
    if word == "latency":
        log_axis(axes, every)
    else:
        plain_axis(axes, 0.0, max(every))
    _size_axis(axes, [size for line in lines for size in line.values[line.metric]])
    draw_title(canvas, "\n".join([title, *([lines[0].label] if len(lines) == 1 else [])]))
    if len(lines) > 1:
        canvas.figure.legend(loc="outside lower center", ncols=1 if len(lines) < 3 else 2)
    return canvas


def _size_axis(axes: Any, sizes: Sequence[int]) -> None:
    """Put a tick at round powers of two, about eight of them."""
    low, high = log2(max(1, min(sizes))), log2(max(1, *sizes))
    step = next(step for step in (1, 2, 5, 10, 20) if (high - low) / step <= 8)
    first = ceil(low / step) * step
    ticks = [2.0**power for power in range(first, int(high) + 1, step)]
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [shown_size(tick) for tick in ticks])
    room = max(0.25, 0.03 * (high - low))
    axes.set_xlim(2 ** (low - room), 2 ** (high + room))
    axes.minorticks_off()


def largest_busbw(fields: pd.DataFrame) -> dict[str, float]:
    """Return run -> busbw [GB/s] at its largest message, of the better placement.

    busbw as NVIDIA's nccl-tests define it (doc/PERFORMANCE.md): algbw times the factor of the
    collective, 2(n-1)/n for all-reduce.
    """
    own = fields[(fields["metric"] == "busbw") & fields["variant"].isin(PLACEMENTS)]
    own = own[own["message_size"].notna() & (own["value"] > 0)]
    best = own.sort_values(["message_size", "value"]).groupby("run", observed=True)["value"].last()
    return {str(run): float(value) for run, value in sorted(best.items(), key=str)}


# Another measurement than that of the row, such as the minimum of its calls.
_STATISTIC = re.compile(
    r"(?:.{0,99}_)?(?:min|max|mean|median|p99\w{0,99}|average|peak|apart|both_ways|overall|pure)"
)


def bandwidth_tables(
    sizes: Mapping[str, str], records: pd.DataFrame
) -> tuple[list[BandwidthTable], set[str]]:
    """Return the tables of the logs, and the logs whose processes were not connected.

    `sizes` is what the job of each log is called by its size; empty if that is not known.
    """
    names = set(sizes)
    alone = set(records["run"][records["variant"] == "apart"]) & names
    wanted = records[records["metric"].isin(METRICS) & records["message_size"].notna()]
    counts = wanted.groupby("run", observed=True)["message_size"].nunique()
    several = {str(run): bool(count > 1) for run, count in counts.items()}
    values: dict[tuple[str, str, int], dict[str, dict[int, list[float]]]] = {}
    seen: dict[tuple[Any, ...], int] = {}
    for record in records_in(wanted):
        size, variant = record.message_size or 0, record.variant
        if record.run not in names - alone or not record.value > 0 or _STATISTIC.fullmatch(variant):
            continue
        kind = "" if variant in PLACEMENTS else variant
        # A size that comes again begins another table; a single size is measured repeatedly.
        key = (record.run, record.rank, record.source, record.metric, variant, size)
        seen[key] = number = seen.get(key, 0) + 1
        number = number if several[record.run] else 1
        table = values.setdefault((record.run, kind, number), {})
        table.setdefault(record.metric, {}).setdefault(size, []).append(record.value)
    tables = dict.fromkeys(names, 0)
    for run, _, number in values:
        tables[run] = max(tables[run], number)
    lines = [
        BandwidthTable(
            run=run,
            name=" ".join(filter(None, (run, kind, f"table {number}" if tables[run] > 1 else ""))),
            size=sizes[run],
            values={metric: _best(metric, own, several[run]) for metric, own in table.items()},
        )
        for (run, kind, number), table in values.items()
    ]
    order = {run: place for place, run in enumerate(sizes)}
    return sorted(lines, key=lambda line: order[line.run]), alone


def _best(metric: str, found: dict[int, list[float]], several: bool) -> dict[int, float]:
    """Return the value of each size: of the better placement, or the mean of single trials."""
    if several:
        better = min if metric == "latency" else max
        return {size: better(found[size]) for size in sorted(found)}
    return {size: sum(own) / len(own) for size, own in found.items()}
