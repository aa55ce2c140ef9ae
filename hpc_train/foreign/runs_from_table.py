"""Foreign tables -> their runs, one for each row, and their measurements."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import islice
from math import isfinite
from pathlib import Path
from statistics import NormalDist, stdev
from typing import get_args

import msgspec

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.base.metrics import RATE_RECORDS, UNITS
from hpc_train.foreign.header import (
    PREFIXED,
    RESULT_COLUMNS,
    STEPS_PER_SECOND,
    TableColumn,
    columns,
)
from hpc_train.foreign.table_file import ResultTable, sheet_of
from hpc_train.jobs.study import Scaling, Warmup
from hpc_train.logs.record import (
    BATCH,
    FRACTIONS,
    PER_GPU,
    STATES,
    Record,
    Scope,
    complete_sizes,
    heading,
    plain_name,
)
from hpc_train.runs.expected_runs import EXCLUDED, MISSING, ExpectedRun, ExpectedStudy
from hpc_train.runs.run import JobState

# As a log reader calls a loss that is NaN.
_LOST = "not_finite"
_STARTED = ("started", "start_time", "start", "created", "timestamp")
_MILLISECONDS = 1e11
_REMARKS = ("remark", "remarks", "comment", "comments", "note", "notes")
# A row that sums up more is one value.
_MOST_RUNS = 1000
_SCALING = "scaling"
# Columns that only tell jobs with equal names or results apart.
_REPETITION = ("repetition", "rep")


@dataclass
class _Row:
    """The cells of a row; `texts` are those that are no numbers, by kind and name of their column.

    `words` are in cells of measurements: `OOM`, `NaN`. `runs` are the values of each run that the
    row sums up.
    """

    place: str
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    wall_s: float | None = None
    restarts: int = 0
    runs: Sequence[Mapping[str, float]] = ()

    @property
    def has_result(self) -> bool:
        """Whether it has a time or a rate."""
        return not self.values.keys().isdisjoint(RESULT_COLUMNS)

    @property
    def job(self) -> object:
        """What two rows of one job share; values agree in these digits, whatever their unit."""
        values = frozenset((name, f"{value:.11e}") for name, value in self.values.items())
        texts, sizes = frozenset(self.texts.items()), frozenset(self.sizes.items())
        return values, texts, sizes, self.wall_s

    def of(self, kind: str) -> dict[str, str]:
        """Return the texts of the columns of a kind, by name."""
        return {name: text for (own, name), text in self.texts.items() if own == kind}


def table_study(tables: Sequence[ResultTable]) -> tuple[ExpectedStudy, list[Record]]:
    """Return the runs of tables, one per row, and their measurements.

    Runs of several tables are distinguished by the names of the tables.

    Raises:
        LogParseError: a table, a column or a cell is invalid, with its place.
    """
    runs: list[ExpectedRun] = []
    records: list[Record] = []
    notes: list[str] = []
    assumed: dict[str, None] = {}
    first: dict[object, tuple[ResultTable, str]] = {}
    equal: list[str] = []
    titles = table_names([one.path for one in tables])
    for table, title in zip(tables, titles, strict=True):
        meanings = columns(table.names, f"{table.path}:{table.line}")
        plain, said = _with_points(table, meanings)
        meanings = _with_gpus_of_node(plain, _settings_and_fractions(plain, meanings))
        said += [one.assumed for one in meanings if one.kind in ("unused", "size") and one.assumed]
        rows = [_row(plain, meanings, place) for place in range(len(plain.rows))]
        notes += _notes(table, meanings, rows)
        assumed |= dict.fromkeys(said)
        for row, name in zip(
            rows, _names(rows, f"{title}: " if len(tables) > 1 else ""), strict=True
        ):
            there, place = first.setdefault(
                row.job if row.has_result else row.place, (table, row.place)
            )
            if there is not table:
                raise LogParseError(
                    f"{row.place}: the same row as {place}: one job, not two repetitions",
                    "remove it or, if they are two jobs, distinguish them by a column `repetition`",
                )
            # Rounded results of two jobs may be equal.
            equal += [f"{place} and {row.place}"] if place != row.place else []
            for number, values in enumerate(row.runs, start=1):
                runs.append(_run(row, f"{name}-r{number}" if len(row.runs) > 1 else name))
                records.extend(_records(row.place, values, runs[-1]))
    scalings = {run.axes.get(_SCALING) for run in runs} - {None}
    scaling = scalings.pop() if len(scalings) == 1 else None
    counts: Counter[str] = Counter()
    for number, run in enumerate(runs):
        # A scaling that all runs declare makes no series.
        axes = {n: v for n, v in run.axes.items() if not (scaling and n == _SCALING)}
        # Runs of one size with the same axes and conditions are numbered in order.
        key = repr((sorted(run.sizes.items()), axes, run.conditions))
        counts[key] += 1
        runs[number] = msgspec.structs.replace(run, axes=axes, repetition=counts[key])
    if equal:
        more = f", {len(equal) - 1} more" if len(equal) > 1 else ""
        assumed[f"equal rows as repetitions ({equal[0]}{more})"] = None
    stem = sheet_of(tables[0].path)[0].stem
    study = ExpectedStudy(name=stem, runs=tuple(runs), warmup=Warmup(steps=0), notes=tuple(notes))
    read = f"reading {', '.join(assumed)}" if assumed else ""
    return msgspec.structs.replace(study, scaling=scaling, assumed=read), records


def table_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of tables: those of their files, and of the sheets of one workbook."""
    split = [sheet_of(path) for path in paths]
    stems = [file.stem for file, _ in split]
    return [
        f"{stem}:{sheet}" if sheet and stems.count(stem) > 1 else stem
        for stem, (_, sheet) in zip(stems, split, strict=True)
    ]


def _names(rows: Sequence[_Row], before: str) -> list[str]:
    """Return the name of each row, after `before`.

    Rows with one name are distinguished by a column `repetition`: `a-r1`, `a-r2` for two rows `a`,
    as runs of a study are called.
    """
    names = [
        f"{before}{row.texts.get(('run', 'run')) or f'row {number}'}"
        for number, row in enumerate(rows, start=1)
    ]
    counts = Counter(names)
    first: dict[str, str] = {}
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        other = row.of("unused")
        if counts[name] > 1 and (told := [other[n] for n in _REPETITION if n in other]):
            names[number] = name = f"{name}-r{told[0]}"
        if first.setdefault(name, row.place) != row.place:
            raise LogParseError(
                f"{row.place}: a second run called {name!r}; the first is {first[name]}",
                "give each row another name, or add a column `repetition`",
            )
    return names


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
        place
        for place, column in enumerate(meanings)
        if column.kind in ("size", "measure", "spread", "count") or column.name == "wall_s"
    ]
    cells = [row[place] for _, row in table.rows for place in numeric]
    kinds = {_comma(one): one for text in cells if "," in text for one in _WITH_COMMA.findall(text)}
    if {"decimal", "thousands"} <= kinds.keys():
        raise LogParseError(
            f"{table.path}: {kinds['decimal']!r} has a decimal comma, and {kinds['thousands']!r} "
            "thousands separators",
            "write all numbers with a decimal point",
        )
    by_file = table.separator == ";" and not any("." in text for text in cells)
    decimal = "decimal" in kinds or ("thousands" not in kinds and by_file)

    def plain(text: str) -> str:
        if "," in text:
            marks = str.maketrans(",", ".", ".") if decimal else str.maketrans("", "", ",")
            text = _WITH_COMMA.sub(lambda found: found[0].translate(marks), text)
        return _THOUSANDS.sub("", text)

    assumed = [column.assumed for column in meanings if column.assumed]
    if kinds.keys() == {"either"}:
        assumed.append(f"{kinds['either']!r} as {plain(kinds['either'])}")
    seconds = [n for n in numeric if not meanings[n].unit and _our_unit(meanings[n]) == "s"]
    times = (row[place] for _, row in table.rows for place in seconds)
    clocks = (text for text in times if text.count(":") == 1 and _CLOCK.fullmatch(text))
    assumed += [f"{text} as m:ss" for text in islice(clocks, 1)]
    rows = tuple(
        (line, tuple(plain(text) if n in numeric else text for n, text in enumerate(row)))
        for line, row in table.rows
    )
    return table._replace(rows=rows), assumed


def _comma(text: str) -> str:
    """Return what the comma in a number is: `decimal`, of `thousands`, or `either`."""
    head, _, tail = text.rpartition(",")
    if "," in head or "." in tail:
        return "thousands"
    is_group = len(tail) == 3 and 0 < len(head) <= 3 and head != "0" and "." not in head
    return "either" if is_group else "decimal"


def _with_gpus_of_node(
    table: ResultTable, meanings: Sequence[TableColumn]
) -> tuple[TableColumn, ...]:
    """Return the columns; `gpus` that are the same on each number of nodes are those of a node."""
    sizes = {one.name: place for place, one in enumerate(meanings) if one.kind == "size"}
    found = list(meanings)
    if sizes.keys() == {"nodes", "gpus"}:
        name = table.names[sizes["gpus"]]
        nodes, gpus = ({cells[sizes[key]] for _, cells in table.rows} for key in ("nodes", "gpus"))
        if len(gpus) == 1 < len(nodes) and "total" not in name.lower():
            why = f"{name!r} as those of each node (all equal)"
            found[sizes["gpus"]] = TableColumn("size", "gpus_per_node", assumed=why)
    return tuple(found)


def _settings_and_fractions(
    table: ResultTable, meanings: Sequence[TableColumn]
) -> tuple[TableColumn, ...]:
    """Return the columns; an unknown one of numbers is an axis only if sizes share its values.

    A setting is tried at several sizes, a result (`gpu_util`) recurs by chance; a text that no two
    rows share, where the sizes differ in each row, few rows have a text or no row with it has a
    result, is a remark. A fraction in numbers above 1 is a
    percentage.
    """
    sizes = [place for place, column in enumerate(meanings) if column.kind == "size"]
    results = [n for n, column in enumerate(meanings) if column.name in RESULT_COLUMNS]
    sized = {tuple(cells[one] for one in sizes) for _, cells in table.rows}
    found = list(meanings)
    for place, column in enumerate(meanings):
        if column.kind != "axis" and column.name not in FRACTIONS:
            continue
        seen: dict[str, set[tuple[str, ...]]] = {}
        for _, cells in table.rows:
            if cells[place] not in _ABSENT:
                seen.setdefault(cells[place], set()).add(tuple(cells[one] for one in sizes))
        numbers = [float(text) for text in seen if _NUMBER.fullmatch(text)]
        recurring = sum(len(where) > 1 for where in seen.values())
        if column.kind == "axis":
            if len(numbers) == len(seen) > 1 and 2 * recurring <= len(seen):
                found[place] = TableColumn("unused", column.name)
                continue
            stated = [cells for _, cells in table.rows if cells[place] not in _ABSENT]
            lost = not any(cells[one] not in _ABSENT for cells in stated for one in results)
            few = 2 * len(stated) <= len(table.rows) and all(" " in text for text in seen)
            # One series for each row, or one for each size, compares nothing.
            rows, many = len(table.rows), len(sized)
            names_rows = 2 < rows and (rows == many or (1 < many and rows == len(stated)))
            is_remark = column.name != _SCALING and (lost or few or names_rows)
            if len(seen) == len(stated) and is_remark:
                why = f"{table.names[place]!r} as a remark (no two rows share a text)"
                found[place] = TableColumn("unused", column.name, assumed=why)
        # 76.1 can only be a percentage, and so are the others of its column.
        elif column.factor == 1 and 2 * sum(value > 1 for value in numbers) > len(numbers):
            found[place] = column._replace(factor=0.01, unit="percent")
    return tuple(found)


def _row(table: ResultTable, meanings: Sequence[TableColumn], place: int) -> _Row:
    """Return the cells of a row.

    Raises:
        LogParseError: a number or a word is invalid.
    """
    row = _Row(table.where(place))
    name = ""
    try:
        for column, text in zip(meanings, table.rows[place][1], strict=True):
            name = column.name
            if text not in _ABSENT and name:
                _add(row, column, text)
        name = "size"
        row.sizes = complete_sizes(row.sizes)
        name = ", ".join((*row.of("count"), *row.of("spread")))
        row.runs = _summed_up(row, meanings)
    except ValueError as wrong:
        of_node = "gpus" in row.sizes and "nodes" in row.sizes
        hint = "; `gpus` is of the whole job, of one node it is gpus_per_node" * of_node
        raise LogParseError(f"{row.place}: {name}: {wrong}", f"correct this cell{hint}") from None
    if not row.sizes:
        raise LogParseError(
            f"{row.place}: no size in this row: every cell of nodes, gpus … is empty",
            "a failed job also has a size; state the requested one",
        )
    return row


def _add(row: _Row, column: TableColumn, text: str) -> None:
    """Add a cell to a row.

    Raises:
        ValueError: its number or word is invalid.
    """
    kind, name = column.kind, column.name
    if kind == "measure":
        _add_measure(row, column, text)
    elif kind == "size":
        # A node has one GPU or none.
        row.sizes[name] = _whole(text, 0 if name == "gpus_per_node" else 1)
    elif name == "restarts":
        row.restarts = _whole(text, 0)
    elif name == "wall_s":
        row.wall_s = value_of(column, text) or None
    elif kind not in ("spread", "count") or re.search("[0-9]", text):
        # The spread of a single run is NaN.
        allowed = get_args(Scaling)
        word = text.lower().removesuffix(" scaling") if name == _SCALING else text
        if name == _SCALING and word not in allowed:
            said = f"{text!r} is not a scaling{nearest(word, allowed)}"
            raise ValueError(f"{said}; allowed: {', '.join(allowed)}, or empty")
        row.texts[kind, name] = word


def _add_measure(row: _Row, column: TableColumn, text: str) -> None:
    name, stated = column.name, _SPREAD.fullmatch(text)
    if name == "loss" and text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        row.values[_LOST] = 1.0
    elif not re.search("[0-9]", text):
        row.words[name] = text
    elif stated:
        row.values[name] = value_of(column, stated["mean"] + stated["unit"])
        row.texts["spread", f"{name}_std"] = stated["spread"] + stated["unit"]
    else:
        row.values[name] = value_of(column, text)


def _summed_up(row: _Row, columns: Sequence[TableColumn]) -> Sequence[Mapping[str, float]]:
    """Return the values of each run of a row that states mean, spread and number of runs.

    The runs have exactly that mean and standard deviation, at the quantiles of a normal
    distribution.
    """
    results = [one for one in columns if one.name in RESULT_COLUMNS and one.name in row.values]
    counts = list(row.of("count").values())
    # One of them belongs to `accuracy_std`, and not to the time.
    others = row.values.keys() - {one.name for one in results}
    spreads = [
        (word, text)
        for word, text in row.of("spread").items()
        if plain_name(word.rpartition("_")[0]) not in others
    ]
    if len(results) != 1 or not counts or not spreads:
        return [row.values]
    count, name, mean = _whole(counts[0], 1), results[0].name, row.values[results[0].name]
    word, text = spreads[0]
    is_inverse = results[0].unit == STEPS_PER_SECOND
    # d(1/x) = dx/x²
    deviation = number(text, "1") * mean**2 if is_inverse else _with_unit(results[0], text)
    deviation *= count**0.5 if word.rpartition("_")[2] in ("sem", "stderr") else 1
    if not 2 <= count <= _MOST_RUNS:
        return [row.values]
    scores = [NormalDist().inv_cdf((n + 0.5) / count) for n in range(count)]
    values = [mean + deviation * score / stdev(scores) for score in scores]
    return [{**row.values, name: value} for value in values] if min(values) > 0 else [row.values]


def _run(row: _Row, name: str) -> ExpectedRun:
    cells = row.of("run")
    state, problem = run_state(cells, row.place)
    unused = row.of("unused")
    if state != OK or not row.has_result:
        problem = problem or next((unused[name] for name in _REMARKS if name in unused), "")
    if state == OK and not row.has_result:
        problem = problem or f"{row.place}: no time and no rate in this row"
        for column, word in islice(row.words.items(), 1):
            state = _STATES.get(word.upper().replace(" ", "_"), JobState.FAILED.value)
            problem = f"{row.place}: {column}: {word}"
    if "exclude" in cells:
        state, problem = EXCLUDED, cells["exclude"]
    return ExpectedRun(
        run_id=name,
        axes=row.of("axis"),
        repetition=1,
        topology=None,
        state=state,
        problem=problem,
        sizes=row.sizes,
        conditions=row.of("condition"),
        restarts=row.restarts,
        wall_s=row.wall_s,
        started=_started(next((unused[name] for name in _STARTED if name in unused), "")),
    )


def _started(text: str) -> float | None:
    """Return when a job began, in seconds since the epoch; a time without a zone is in UTC."""
    try:
        if _NUMBER.fullmatch(text):
            # Weights & Biases and MLflow state milliseconds, too.
            began = number(text, "s")
            return began / (1000 if began > _MILLISECONDS else 1)
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


_SCOPES: Mapping[str, Scope] = {
    "memory": "per_rank", "mfu": "per_gpu", **dict.fromkeys(PER_GPU, "per_gpu")
}  # fmt: skip


def _records(place: str, values: Mapping[str, float], run: ExpectedRun) -> Iterator[Record]:
    """Yield the values of a run; a rate of one GPU counts for all, unless theirs is stated."""
    source, _, line = place.rpartition(":")
    each = 1 if run.sizes.keys() == {"nodes"} else run.sizes.get("gpus_per_node", 0)
    gpus = run.sizes.get("nodes", 0) * each
    for name, value in values.items():
        metric, scope = PER_GPU.get(name, name), _SCOPES.get(name, "global")
        # One process may drive several GPUs.
        if name in PER_GPU and metric != "tflops" and gpus and metric not in values:
            scope, value = "global", value * gpus
        yield Record(
            run=run.run_id,
            source=source,
            line=int(line),
            parser="table",
            metric=metric,
            value=value,
            unit=UNITS.get(metric, "1"),
            scope=scope,
            variant="loss" if metric == _LOST else "",
        )


def value_of(column: TableColumn, text: str) -> float:
    """Return the value of a cell in hpctrain's unit; a unit in the cell precedes its column's.

    Raises:
        ValueError: it is no number, or not one that this measurement can have.
    """
    name = column.name
    clock = _CLOCK.fullmatch(text) if _our_unit(column) == "s" else None
    if column.unit == STEPS_PER_SECOND:
        steps_per_second = number(text, column.unit)
        value = 1 / steps_per_second if steps_per_second else 0.0
    elif clock:
        days, hours, minutes, seconds = (float(group or 0) for group in clock.groups())
        # Two fields are h:mm in a column of hours.
        factor = 60 if column.unit[:1] == "h" and clock[2] is None else 1
        value = factor * (((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    else:
        value = _with_unit(column, text)
    if name in FRACTIONS and not 0 <= value <= 1:
        most = "a fraction, from 0 to 1" if column.factor == 1 else "at most 100 %"
        raise ValueError(f"{text} must be {most}")
    if value <= 0 and (name in RESULT_COLUMNS or name == BATCH):
        raise ValueError(f"{text} must be above 0; leave the cell empty if nothing was measured")
    if value < 0 and name != "loss":
        raise ValueError(f"{text} must not be negative")
    return value


def _our_unit(column: TableColumn) -> str:
    return UNITS.get(PER_GPU.get(column.name, column.name), "s")


def _with_unit(column: TableColumn, text: str) -> float:
    if match := _WITH_UNIT.fullmatch(text):
        found = heading(f"{column.name} [{match['unit']}]")
        if column.name in (found.name, plain_name(match["unit"])):
            return number(match["number"], "1") * found.factor
    return number(text, column.unit or _our_unit(column)) * column.factor


OK = JobState.COMPLETED.value
_ZERO = re.compile(r"0+(?:[.:]0+)?")
_STATES = {
    **{state.value: state.value for state in JobState},
    MISSING: MISSING,
    **{word: state for state, words in STATES.items() for word in words},
}


def run_state(cells: Mapping[str, str], place: str) -> tuple[str, str]:
    """Return state and problem of a run; the exit code decides if no state is given.

    Raises:
        LogParseError: an unknown state, or an exit code that contradicts it.
    """
    code, problem, stated = (cells.get(name, "") for name in ("exit_code", "problem", "state"))
    has_failed = bool(code) and not _ZERO.fullmatch(code)
    word = stated.upper().split()[0].rstrip("+") if stated else "FAILED" if has_failed else OK
    if word not in _STATES:
        raise LogParseError(
            f"{place}: state: {stated!r} is not a state{nearest(word, _STATES)}",
            f"allowed: {', '.join(_STATES)}; empty means ok",
        )
    state = _STATES[word]
    if state == OK and has_failed:
        raise LogParseError(
            f"{place}: state {stated!r} and exit_code {code!r} contradict each other",
            "correct one of the two cells",
        )
    if state == JobState.FAILED.value and has_failed:
        problem = problem or f"exit code {code}"
    return state, problem


_ABSENT = frozenset({"", "-", "--", "\u2013", "\u2014", "NA", "N/A", "n/a", "null", "None"})
_MOST = 1e100
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CLOCK = re.compile(
    r"(?:(?:([0-9]{1,6})-)?([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{2}(?:\.[0-9]+)?)", re.ASCII
)
_WITH_UNIT = re.compile(rf"^(?P<number>{_NUMBER.pattern})\s*(?P<unit>[^\W\d_].*|%.*|/.*)")
_PLAIN = r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,9})?"
_SPREAD = re.compile(
    rf"\(?(?P<mean>{_PLAIN})\s{{0,4}}(?:±|\+/-|\+-)\s{{0,4}}(?P<spread>{_PLAIN})\)?"
    r"(?P<unit>.{0,40})"
)


def number(text: str, unit: str) -> float:
    """Return the number in a cell; `unit` is the one that its column is in.

    Raises:
        ValueError: the cell is not a finite number; the message gives the reason.
    """
    if not _NUMBER.fullmatch(text):
        with_unit = f" with the unit of its column, {unit}" if _WITH_UNIT.fullmatch(text) else ""
        raise ValueError(f"{text[:40]!r} is not a number{with_unit}")
    value = float(text)
    if not isfinite(value) or abs(value) > _MOST:
        raise ValueError(f"{text[:40]} is too large for a measurement; at most {_MOST:g}")
    return value


def _whole(text: str, least: int) -> int:
    """Return the whole number in a cell.

    Raises:
        ValueError: it is not a whole number, or smaller than `least`.
    """
    value = number(text, "1")
    if value != int(value) or not least <= value <= 10**9:
        raise ValueError(f"{text[:40]} must be a whole number from {least} up")
    return int(value)


def _notes(table: ResultTable, meanings: Sequence[TableColumn], rows: Sequence[_Row]) -> list[str]:
    """Return how the columns are read, which are not used, and an example of each unused cell."""
    written = list(zip(table.names, meanings, strict=True))
    read = [
        f"{name!r} is read as {column.name}"
        + (f" in {column.unit}" if column.unit else " over all ranks")
        for name, column in written
        if column.unit or (column.name in RATE_RECORDS and name.lower() != column.name)
    ]
    unused = [
        name or f"column {place} (without a name)"
        for place, (name, column) in enumerate(written, start=1)
        if column.kind == "unused" and name.lower() not in _REPETITION
    ]
    axes = []
    for name, column in written:
        values = len({row.texts.get(("axis", column.name)) for row in rows} - {None})
        # No two rows are in one series, or a person may not have meant it as an axis.
        if 2 < values == len(rows) or (values > 1 and PREFIXED.fullmatch(name)):
            axes.append(f"{name!r} ({values} values)")
    counts = sorted({len(row.runs) for row in rows} - {1})
    many = " or ".join(map(str, dict.fromkeys((*counts[:1], *counts[-1:]))))
    said = {
        "{}.": "; ".join(read),
        "columns that are not used: {}.": ", ".join(unused),
        "each value is a separate series in {}; leave out a column that is a result.": (
            ", ".join(axes)
        ),
        "a row is the mean and the spread of its {} runs, taken as normally distributed.": many,
    }
    notes = [f"{table.path}: {text.format(found)}" for text, found in said.items() if found]
    first = f"{table.path}: each row is a run; sizes, states and values are taken from the table."
    words = ((row.place, *one) for row in rows if row.has_result for one in row.words.items())
    for place, name, word in islice(words, 1):
        notes.append(f"{place}: {name}: {word!r} is not a number, and counts as empty.")
    alone = (row for row in rows if row.of("spread") and len(row.runs) == 1)
    for row in islice((one for one in alone if "1" not in one.of("count").values()), 1):
        why = "it is not that of the row's one time or rate, which counts as a single run."
        why = why if row.of("count") else "nothing states the number of runs: add a column `n`."
        notes.append(f"{row.place}: the spread is not used, because {why}")
    return [first, *table.notes, *notes]
