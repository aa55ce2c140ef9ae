"""Foreign tables -> their runs, one for each row, and their measurements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from itertools import chain, islice
from math import isfinite
from statistics import NormalDist, stdev
from typing import NamedTuple, TypeVar

import msgspec

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.base.metrics import RATE_RECORDS, UNITS
from hpc_train.foreign.csv_table import PREFIXED, ResultTable
from hpc_train.foreign.header import (
    LABEL,
    REPETITION,
    STEPS_PER_SECOND,
    TableColumn,
    columns,
    declared_scaling,
    run_names,
    table_names,
    with_scaling,
)
from hpc_train.foreign.workbook import sheet_of
from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import (
    BATCH,
    FRACTIONS,
    PER_GPU,
    RATES_PER_GPU,
    RESULTS,
    Record,
    Scope,
    complete_sizes,
    heading,
    plain_name,
)
from hpc_train.runs.expected_runs import EXCLUDED, MISSING, ExpectedRun, ExpectedStudy, undeclared
from hpc_train.runs.run import JobState

_T = TypeVar("_T")
# As a log reader calls a loss that is NaN.
_LOST = "not_finite"
_STARTED = ("started", "start_time", "start", "created", "timestamp")
_MILLISECONDS = 1e11
_PERCENT = 100
# A row that sums up more is one value.
_MOST_RUNS = 1000


class _Row(NamedTuple):
    """The cells of a row by their column: texts, whole numbers, values, spreads, and words.

    `words` are in cells of measurements: `OOM`, `NaN`.
    """

    place: str
    texts: dict[TableColumn, str]
    counts: dict[str, int]
    values: dict[str, float]
    spreads: dict[str, float]
    words: dict[str, str]
    results: list[TableColumn]

    def of(self, kind: str) -> dict[str, str]:
        """Return the texts of the columns of a kind, by name."""
        return {column.name: text for column, text in self.texts.items() if column.kind == kind}

    def parsed(self, name: str, read: Callable[[], _T]) -> _T:
        """Return the parsed value, or raise an error with its place."""
        try:
            return read()
        except ValueError as wrong:
            raise LogParseError(f"{self.place}: {name}: {wrong}", "correct this cell") from None


class _TableRuns(NamedTuple):
    """The runs of one table, with names, their measurements, what they hold, and notes.

    `contents` are the place of each row with a result, and what two rows of one job share.
    `assumed` is how something is read that may mean something else.
    """

    runs: list[ExpectedRun]
    records: list[Record]
    contents: list[tuple[str, object]]
    notes: tuple[str, ...]
    assumed: list[str]


def table_study(tables: Sequence[ResultTable]) -> tuple[ExpectedStudy, list[Record]]:
    """Return the runs of tables, one per row, and their measurements.

    samples_per_second = global_batch_size / step_time if only these two are given. Runs of several
    tables are distinguished by the names of the tables.

    Raises:
        LogParseError: a table, a column or a cell is invalid, with its place.
    """
    titles = table_names([one.path for one in tables])
    before = [f"{title}: " if len(titles) > 1 else "" for title in titles]
    parts = list(map(_of_table, tables, before))
    first: dict[object, str] = {}
    for place, contents in chain.from_iterable(one.contents for one in parts):
        if first.setdefault(contents, place) != place:
            raise LogParseError(
                f"{place}: the same row as {first[contents]}: one job, not two repetitions",
                "remove it or, if they are two jobs, distinguish them by a column `repetition`",
            )
    runs, scaling = declared_scaling([run for one in parts for run in one.runs])
    notes = tuple(chain.from_iterable(one.notes for one in parts))
    counts: Counter[str] = Counter()
    for number, run in enumerate(runs):
        # Runs of one size with the same axes and conditions are numbered in order.
        key = repr((sorted(run.sizes.items()), run.axes, run.conditions))
        counts[key] += 1
        runs[number] = msgspec.structs.replace(run, repetition=counts[key])
    stem = sheet_of(tables[0].path)[0].stem
    study = undeclared(stem, tuple(runs), Warmup(steps=0), notes)
    records = [record for one in parts for record in one.records]
    assumed = dict.fromkeys(chain.from_iterable(one.assumed for one in parts))
    said = f"reading {', '.join(assumed)}" if assumed else ""
    return msgspec.structs.replace(study, scaling=scaling, assumed=said), records


def _of_table(table: ResultTable, before: str) -> _TableRuns:
    meanings = columns(table)
    table, assumed = _with_points(table, meanings)
    meanings = _without_results(table, meanings)
    rows = [_row(table, meanings, place) for place in range(len(table.rows))]
    stated = [row.of("run").get("run") for row in rows]
    names = run_names(table, stated, before, [row.of("unused") for row in rows])
    runs = list(map(_run, rows, names))
    contents: list[tuple[str, object]] = []
    for row, run in zip(rows, runs, strict=True):
        # Digits in which the values of one job agree, whatever their unit.
        values = frozenset((name, f"{value:.11e}") for name, value in row.values.items())
        if row.results:
            own = (values, frozenset(run.sizes.items()), frozenset(row.texts.items()))
            contents.append((row.place, own))
    of_rows = list(map(_summed_up, rows))
    numbered = [
        (place, values, msgspec.structs.replace(run, run_id=f"{run.run_id}-r{number}"))
        if len(every) > 1
        else (place, values, run)
        for place, (run, every) in enumerate(zip(runs, of_rows, strict=True))
        for number, values in enumerate(every, start=1)
    ]
    records = list(chain.from_iterable(_records(table, *one) for one in numbered))
    notes = [*table_notes(table, meanings, rows), *_unused_cells(rows, runs)]
    if len(numbered) > len(rows):
        counts = sorted({text for row in rows for text in row.of("count").values()}, key=float)
        said = " or ".join(counts[:: max(1, len(counts) - 1)])
        notes.append(
            f"{table.path}: a row is the mean and the spread of its {said} runs, which "
            "are taken as normally distributed."
        )
    return _TableRuns([run for _, _, run in numbered], records, contents, tuple(notes), assumed)


def _unused_cells(rows: Sequence[_Row], runs: Sequence[ExpectedRun]) -> Iterator[str]:
    """Yield an example of each kind of cell that is not used."""
    found: dict[str, str] = {}
    for row, run in zip(rows, runs, strict=True):
        for name, word in islice(row.words.items(), 1) if run.state == OK else ():
            text = f"{row.place}: {name}: {word!r} is not a number, and counts as empty."
            found.setdefault("words", text)
        if (begun := _start(row)) and run.started is None:
            text = f"{row.place}: {begun!r} is not a time at which a job started, and not used."
            found.setdefault("start", text)
        if (row.spreads or row.of("spread")) and not row.of("count"):
            text = (
                f"{row.place}: the spread is not used, because nothing states the number of runs: "
                "add a column `n`."
            )
            found.setdefault("spread", text)
    yield from (found[kind] for kind in ("words", "start", "spread") if kind in found)


# What a comma or a dot is part of; and the separators of thousands that are nothing else.
_WITH_COMMA = re.compile(r"[0-9.]{0,40}(?:,[0-9.]{1,40}){1,20}")
_THOUSANDS = re.compile(r"(?<=[0-9])[_' \u00a0\u202f](?=[0-9]{3}(?![0-9]))")


def _with_points(
    table: ResultTable, meanings: Sequence[TableColumn]
) -> tuple[ResultTable, list[str]]:
    """Return the table with its numbers as `1234.5`, and what was assumed of their meaning.

    Raises:
        LogParseError: one comma is decimal, and another one separates thousands.
    """
    numeric = [
        column.kind in ("size", "measure", "spread", "count") or column.name == "wall_s"
        for column in meanings
    ]
    times = [(UNITS.get(c.name) == "s" and not c.unit) or c.name == "wall_s" for c in meanings]

    def cells(chosen: Sequence[bool]) -> Iterator[str]:
        for _, row in table.rows:
            yield from (text for text, own in zip(row, chosen, strict=True) if own)

    kinds = {_comma(one): one for text in cells(numeric) for one in _WITH_COMMA.findall(text)}
    if {"decimal", "thousands"} <= kinds.keys():
        raise LogParseError(
            f"{table.path}: {kinds['decimal']!r} has a decimal comma, and {kinds['thousands']!r} "
            "thousands separators",
            "write all numbers with a decimal point",
        )
    by_file = table.separator == ";" and not any("." in text for text in cells(numeric))
    decimal = "decimal" in kinds or ("thousands" not in kinds and by_file)

    def plain(text: str) -> str:
        return text.replace(".", "").replace(",", ".") if decimal else text.replace(",", "")

    assumed = [column.assumed for column in meanings if column.assumed]
    if kinds.keys() == {"either"}:
        assumed.append(f"{kinds['either']!r} as {plain(kinds['either'])}")
    clocks = filter(_SHORT_CLOCK.fullmatch, cells(times))
    assumed += [f"{text} as m:ss" for text in islice(clocks, 1)]
    rows = []
    for line, row in table.rows:
        shown = [_WITH_COMMA.sub(lambda found: plain(found[0]), text) for text in row]
        pairs = zip(row, shown, numeric, strict=True)
        rows.append(
            (line, tuple(_THOUSANDS.sub("", one) if own else text for text, one, own in pairs))
        )
    return table._replace(rows=tuple(rows)), assumed


def _comma(text: str) -> str:
    """Return what the comma in a number is: `decimal`, of `thousands`, or `either`."""
    head, _, tail = text.rpartition(",")
    if "," in head or "." in tail:
        return "thousands"
    is_group = len(tail) == 3 and 0 < len(head) <= 3 and head != "0" and "." not in head
    return "either" if is_group else "decimal"


def _without_results(
    table: ResultTable, meanings: Sequence[TableColumn]
) -> tuple[TableColumn, ...]:
    """Return the columns; an unknown one of numbers is an axis only if sizes share its values.

    A setting is tried at several sizes, a result (`gpu_util`) recurs by chance.
    """
    sizes = [place for place, column in enumerate(meanings) if column.kind == "size"]
    found = list(meanings)
    for place, column in enumerate(meanings):
        seen: dict[str, set[tuple[str, ...]]] = {}
        for _, cells in table.rows:
            if cells[place] not in ABSENT:
                seen.setdefault(cells[place], set()).add(tuple(cells[one] for one in sizes))
        recurring = sum(len(where) > 1 for where in seen.values())
        is_number = all(_NUMBER.fullmatch(text) for text in seen)
        if column.name in FRACTIONS and column.factor == 1:
            values = [float(text) for text in seen if _NUMBER.fullmatch(text)]
            # 76.1 can only be a percentage, and so are the others of its column.
            if 2 * sum(value > 1 for value in values) > len(values):
                found[place] = column._replace(factor=1 / _PERCENT, unit="percent")
        if column.kind == "axis" and is_number and len(seen) > 1 and 2 * recurring <= len(seen):
            found[place] = TableColumn("unused", column.name)
    return tuple(found)


def _summed_up(row: _Row) -> list[dict[str, float]]:
    """Return the values of each run of a row that states mean, spread and number of runs.

    The runs have exactly that mean and standard deviation, at the quantiles of a normal
    distribution.
    """
    results = [column for column in row.results if column.name in RESULT_COLUMNS]
    counts, columns = row.of("count"), row.of("spread")
    if len(results) != 1 or not counts or not (row.spreads or columns):
        return [row.values]
    count, name = next(iter(counts)), results[0].name
    number_of_runs = row.parsed(count, partial(whole, counts[count], 1))
    if number_of_runs < 2 or number_of_runs > _MOST_RUNS:
        return [row.values]
    deviation = row.spreads.get(name, 0.0)
    for column, text in islice(columns.items(), 1):
        deviation = row.parsed(column, partial(number, text, "1")) * results[0].factor
        if results[0].unit == STEPS_PER_SECOND:
            deviation *= row.values[name] ** 2
        if column.rpartition("_")[2] in ("sem", "stderr"):
            deviation *= number_of_runs**0.5
    scores = [NormalDist().inv_cdf((n + 0.5) / number_of_runs) for n in range(number_of_runs)]
    values = [row.values[name] + deviation * score / stdev(scores) for score in scores]
    return [{**row.values, name: value} for value in values] if min(values) > 0 else [row.values]


def _row(table: ResultTable, meanings: Sequence[TableColumn], place: int) -> _Row:
    """Return the cells of a row.

    Raises:
        LogParseError: a number is invalid.
    """
    row = _Row(table.where(place), {}, {}, {}, {}, {}, [])
    for column, text in zip(meanings, table.rows[place][1], strict=True):
        # The spread of a single run is NaN.
        is_stated = column.kind not in ("spread", "count") or re.search("[0-9]", text)
        if text not in ABSENT and column.name and is_stated:
            row.parsed(column.name, partial(_add, row, column, text))
    return row


def _add(row: _Row, column: TableColumn, text: str) -> None:
    """Add a cell to a row.

    Raises:
        ValueError: its number is invalid.
    """
    name = column.name
    if column.kind == "size" or name == "restarts":
        # A node has one GPU or none.
        row.counts[name] = whole(text, 0 if name in ("gpus_per_node", "restarts") else 1)
    elif name == "loss" and _NOT_FINITE.fullmatch(text):
        row.values[_LOST] = 1.0
    elif column.kind == "measure" and not re.search("[0-9]", text):
        row.words[name] = text
    elif column.kind == "measure":
        mean, spread = _mean_and_spread(text)
        row.values[name] = value_of(column, mean)
        row.results.append(column)
        if spread and column.unit == STEPS_PER_SECOND:
            # d(1/x) = dx/x²
            row.spreads[name] = number(spread, column.unit) * row.values[name] ** 2
        elif spread:
            row.spreads[name] = _in_ours(column, spread)
    else:
        row.texts[column] = text


def _run(row: _Row, name: str) -> ExpectedRun:
    cells = row.of("run")
    state, problem = run_state(cells, row.place)
    if state == OK and not any(name in RESULT_COLUMNS for name in row.values):
        problem = problem or f"{row.place}: no time and no rate in this row"
        for column, word in islice(row.words.items(), 1):
            state = _STATES.get(word.upper().replace(" ", "_"), JobState.FAILED.value)
            problem = f"{row.place}: {column}: {word}"
    if "exclude" in cells:
        state, problem = EXCLUDED, cells["exclude"]
    sizes = {size: count for size, count in row.counts.items() if size != "restarts"}
    if not sizes:
        raise LogParseError(
            f"{row.place}: no size in this row: every cell of nodes, gpus … is empty",
            "a failed job also has a size; state the requested one",
        )
    wall = [
        row.parsed(column.name, partial(value_of, column, text))
        for column, text in row.texts.items()
        if column.name == "wall_s"
    ]
    return ExpectedRun(
        run_id=name,
        axes=row.parsed(LABEL, lambda: with_scaling(row.of("axis"))),
        repetition=1,
        topology=None,
        state=state,
        problem=problem,
        sizes=row.parsed("size", lambda: complete_sizes(sizes)),
        conditions=row.of("condition"),
        restarts=row.counts.get("restarts", 0),
        wall_s=wall[0] or None if wall else None,
        started=_started(_start(row)),
    )


def _start(row: _Row) -> str:
    cells = row.of("unused")
    return next((cells[name] for name in _STARTED if name in cells), "")


def _started(text: str) -> float | None:
    """Return when a job began, in seconds since the epoch; a time without a zone is in UTC."""
    if _NUMBER.fullmatch(text) and float(text) < MOST:
        # Weights & Biases and MLflow state milliseconds, too.
        return float(text) / (1000 if float(text) > _MILLISECONDS else 1)
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


def _records(
    table: ResultTable, place: int, values: Mapping[str, float], run: ExpectedRun
) -> Iterator[Record]:
    gpus = run.sizes.get("nodes", 0) * run.sizes.get("gpus_per_node", 0)
    for metric, scope, value in measurements(values, gpus):
        yield Record(
            run=run.run_id,
            source=str(table.path),
            line=table.rows[place][0],
            parser="table",
            metric=metric,
            value=value,
            unit=UNITS.get(metric, "1"),
            scope=scope,
            variant="loss" if metric == _LOST else "",
        )


RESULT_COLUMNS = (*RESULTS, *RATES_PER_GPU)
_ANY_SIGN = ("loss",)
_SCOPES: Mapping[str, Scope] = {
    "memory": "per_rank", "mfu": "per_gpu", **dict.fromkeys(PER_GPU, "per_gpu")
}  # fmt: skip


def value_of(column: TableColumn, text: str) -> float:
    """Return the value of a cell in hpctrain's unit.

    Raises:
        ValueError: it is no number, or not one that this measurement can have.
    """
    name, value = column.name, _in_ours(column, text)
    if name in FRACTIONS and not 0 <= value <= 1:
        most = "a fraction, from 0 to 1" if column.factor == 1 else "at most 100 %"
        raise ValueError(f"{text} must be {most}")
    if name in (*RESULT_COLUMNS, BATCH) and value <= 0:
        raise ValueError(f"{text} must be above 0; leave the cell empty if nothing was measured")
    if value < 0 and name not in _ANY_SIGN:
        raise ValueError(f"{text} must not be negative")
    return value


def _in_ours(column: TableColumn, text: str) -> float:
    """Return the number in a cell in hpctrain's unit; a unit in the cell precedes its column's.

    Raises:
        ValueError: it is no number.
    """
    name = column.name
    if column.unit == STEPS_PER_SECOND:
        steps_per_second = number(text, column.unit)
        return 1 / steps_per_second if steps_per_second else 0.0
    ours = UNITS.get(PER_GPU.get(name, name), "s")
    if ours == "s" and (seconds := _clock(text, in_hours=column.unit[:1] == "h")) is not None:
        return seconds
    if match := _WITH_UNIT.fullmatch(text):
        found = heading(f"{name} [{match['unit']}]")
        if name in (found.name, plain_name(match["unit"])):
            return number(match["number"], ours) * found.factor
    return number(text, column.unit or ours) * column.factor


def _mean_and_spread(text: str) -> tuple[str, str]:
    """Split `1.20 ± 0.02 s`, `1.20 +/- 0.02` and `1.20(2)`; the spread of another text is empty."""
    if match := _SPREAD.fullmatch(text):
        return match["mean"] + match["unit"], match["spread"] + match["unit"]
    if match := _LAST_DIGITS.fullmatch(text):
        decimals = len(match["mean"].partition(".")[2])
        return match["mean"] + match["unit"], f"{match['digits']}e-{decimals}{match['unit']}"
    return text, ""


def measurements(values: Mapping[str, float], gpus: int) -> Iterator[tuple[str, Scope, float]]:
    """Yield metric, scope and value of each column; `gpus` are those of the row, 0 if unknown.

    A rate of one GPU is multiplied by the GPUs, unless the row has that of all.
    """
    for name, value in values.items():
        metric, scope = PER_GPU.get(name, name), _SCOPES.get(name, "global")
        # One process may drive several GPUs.
        if name in PER_GPU and metric != "tflops" and gpus and metric not in values:
            yield metric, "global", value * gpus
        else:
            yield metric, scope, value


OK = JobState.COMPLETED.value
_STATES = {
    **{state.value: state.value for state in JobState},
    MISSING: MISSING,
    **dict.fromkeys(
        ("OK", "SUCCESS", "SUCCEEDED", "DONE", "FINISHED", "COMPLETE", "PASSED", "0", "0:0"), OK
    ),
    **dict.fromkeys(("FAIL", "FAILURE", "CRASHED", "ERROR"), JobState.FAILED.value),
    # Weights & Biases and MLflow: a user stopped the run.
    **dict.fromkeys(("KILLED", "STOPPED", "CANCELED"), JobState.CANCELLED.value),
    **dict.fromkeys(("QUEUED", "SCHEDULED"), JobState.PENDING.value),
    "OOM": JobState.OUT_OF_MEMORY.value,
}
_EXIT_CODE = re.compile(r"-?[0-9]{1,10}(?:\.0|:[0-9]{1,3})?")


def run_state(cells: Mapping[str, str], place: str) -> tuple[str, str]:
    """Return state and problem of a run; the exit code decides if no state is given.

    Raises:
        LogParseError: an unknown state, no exit code, or both contradict each other.
    """
    code, problem = cells.get("exit_code", "0"), cells.get("problem", "")
    if not _EXIT_CODE.fullmatch(code):
        raise LogParseError(
            f"{place}: exit_code: {code!r} is not an exit code",
            "write a number, or CODE:SIGNAL as sacct does",
        )
    is_zero = not re.search("[1-9]", code)
    state = _stated(cells["state"], place) if "state" in cells else OK
    if state == OK and not is_zero:
        if "state" in cells:
            raise LogParseError(
                f"{place}: state {cells['state']!r} and exit_code {code!r} contradict each other",
                "correct one of the two cells",
            )
        state = JobState.FAILED.value
    if state == JobState.FAILED.value and not is_zero:
        problem = problem or f"exit code {code}"
    return state, problem


def _stated(text: str, place: str) -> str:
    word = text.upper().split()[0].rstrip("+")
    if word not in _STATES:
        raise LogParseError(
            f"{place}: state: {text!r} is not a state{nearest(word, _STATES)}",
            f"allowed: {', '.join(_STATES)}; empty means ok",
        )
    return _STATES[word]


ABSENT = frozenset({"", "-", "--", "\u2013", "\u2014", "NA", "N/A", "n/a", "null", "None"})
MOST = 1e100
# Letters of a cell in a message.
_LONGEST = 40
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:(?:([0-9]{1,6})-)?([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{2}(?:\.[0-9]+)?)", re.ASCII
)
_SHORT_CLOCK = re.compile(r"[0-9]{1,9}:[0-9]{2}(?:\.[0-9]+)?")
_WITH_UNIT = re.compile(rf"^(?P<number>{_NUMBER.pattern})\s*(?P<unit>[^\W\d_].*|%.*|/.*)")
_PLAIN = r"[+-]?[0-9]{0,40}\.?[0-9]{1,40}(?:[eE][+-]?[0-9]{1,3})?"
_SPREAD = re.compile(
    rf"\(?(?P<mean>{_PLAIN}) {{0,4}}(?:±|\+/-|\+-) {{0,4}}(?P<spread>{_PLAIN})\)?"
    r"(?P<unit>.{0,40})"
)
_LAST_DIGITS = re.compile(
    r"(?P<mean>[0-9]{1,40}(?:\.[0-9]{1,40})?)\((?P<digits>[0-9]{1,3})\)(?P<unit>.{0,40})"
)


def number(text: str, unit: str) -> float:
    """Return the number in a cell; `unit` is the one that its column is in.

    Raises:
        ValueError: the cell is not a finite number; the message gives the reason.
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        with_unit = f" with the unit of its column, {unit}" if _WITH_UNIT.fullmatch(text) else ""
        raise ValueError(f"{_short(text)!r} is not a number{with_unit}")
    value = float(text)
    if not isfinite(value) or abs(value) > MOST:
        raise ValueError(f"{_short(text)} is too large for a measurement; at most {MOST:g}")
    return value


def _clock(text: str, *, in_hours: bool) -> float | None:
    """Return the seconds of `[D-]h:mm:ss` and `m:ss`, which is h:mm in a column of hours."""
    match = _CLOCK.fullmatch(text)
    if not match:
        return None
    days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    factor = 60 if in_hours and match[2] is None else 1
    return factor * (((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def whole(text: str, least: int) -> int:
    """Return the whole number in a cell.

    Raises:
        ValueError: it is not a whole number, or smaller than `least`.
    """
    value = number(text, "1")
    if value != int(value) or not least <= value <= 10**9:
        raise ValueError(f"{_short(text.strip())} must be a whole number from {least} up")
    return int(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} letters)"


_MOST_NAMED = 6


def table_notes(
    table: ResultTable, meanings: Sequence[TableColumn], rows: Sequence[_Row]
) -> Iterator[str]:
    """Yield how the columns are read, and which are not used."""
    yield f"{table.path}: each row is a run; sizes, states and values are taken from the table."
    yield from table.notes
    read = [
        f"{name!r} is read as {column.name}"
        + (f" in {column.unit}" if column.unit else " over all ranks")
        for name, column in zip(table.names, meanings, strict=True)
        if column.unit or (column.name in RATE_RECORDS and name.strip().lower() != column.name)
    ]
    if read:
        yield f"{table.path}: {'; '.join(read)}."
    unused = [
        name or f"column {place} (without a name)"
        for place, (name, column) in enumerate(zip(table.names, meanings, strict=True), start=1)
        if column.kind == "unused" and name.strip().lower() not in REPETITION
    ]
    if unused:
        yield f"{table.path}: columns that are not used: {', '.join(unused)}."
    axes = []
    for name, column in zip(table.names, meanings, strict=True):
        values = len({row.texts[column] for row in rows if column in row.texts})
        # No two rows are in one series, or a person may not have meant it as an axis.
        odd = 2 < values == len(rows) or (values > 1 and PREFIXED.fullmatch(name.strip()))
        if column.kind == "axis" and odd:
            axes.append(f"{name!r} ({values} values)")
    if axes:
        more = f" and {len(axes) - _MOST_NAMED} more" if len(axes) > _MOST_NAMED else ""
        yield (
            f"{table.path}: each value is a separate series in {', '.join(axes[:_MOST_NAMED])}"
            f"{more}; leave out a column that is a result."
        )
