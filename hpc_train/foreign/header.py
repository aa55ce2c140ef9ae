"""The header of a foreign table -> the meaning of its columns, the scaling and names of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.foreign.csv_table import ResultTable, plain_headings
from hpc_train.foreign.workbook import sheet_of
from hpc_train.jobs.study import Scaling
from hpc_train.logs import record as vocabulary
from hpc_train.runs.expected_runs import ExpectedRun

# Each unknown name is compared with all known ones, and is named in the report.
_MOST_COLUMNS = 1000
ColumnKind = Literal["size", "measure", "condition", "axis", "unused", "run", "spread", "count"]
STEPS_PER_SECOND = "steps/s"
_ALLOWED = (
    f"allowed: {', '.join(vocabulary.KNOWN)}; a new axis needs a name that is not similar to these"
)


class TableColumn(NamedTuple):
    """Kind, name and unit of a column; `assumed` is what was assumed of its meaning.

    A rate of steps has the name `step_time`, and the unit `STEPS_PER_SECOND`.
    """

    kind: ColumnKind
    name: str
    factor: float = 1.0
    unit: str = ""
    assumed: str = ""


def columns(table: ResultTable) -> tuple[TableColumn, ...]:
    """Return the meaning of each column; an unknown name is an axis.

    Raises:
        LogParseError: a name is misspelt or duplicate, or no column has a size or a result.
    """
    where = f"{table.path}:{table.line}"
    if len(table.names) > _MOST_COLUMNS:
        raise LogParseError(
            f"{where}: {len(table.names)} columns, at most {_MOST_COLUMNS}",
            "keep those of sizes, results and settings",
        )
    if step := next((n for n in table.names if n.strip().lower() in ("step", "epoch")), ""):
        raise LogParseError(
            f"{where}: a table has one row for each job; the column {step!r} numbers the steps of "
            "a job",
            "state one mean of each job, without the warm-up, and call the column `steps` or "
            "`epochs` if it is the number of all steps or epochs",
        )
    names = plain_headings(table.names)
    words = frozenset(map(vocabulary.plain_name, names))
    found = [_column("" if _is_needless(name, words) else name, where) for name in names]
    # One loss and one accuracy: that of this name, else the first.
    for word in ("accuracy", "loss"):
        places = [place for place, column in enumerate(found) if column.name == word]
        kept = min(places, key=lambda place: names[place].strip().lower() != word, default=0)
        for place in places:
            if place != kept and names[place] != names[kept]:
                found[place] = TableColumn("unused", names[place])
    if not any(column.name in (*vocabulary.RESULTS, *vocabulary.RATES_PER_GPU) for column in found):
        found = list(map(_as_training, found, table.names))
    positions: dict[str, int] = {}
    for place, (column, name) in enumerate(zip(found, table.names, strict=True)):
        first = table.names[positions.setdefault(column.name, place)]
        if column.name and positions[column.name] != place:
            both = repr(name) if first == name else f"{first!r} as {name!r}"
            raise LogParseError(f"{where}: duplicate column {both}; keep one of them")
    _check_enough(found, table.names, where)
    return tuple(found)


def _as_training(column: TableColumn, name: str) -> TableColumn:
    """Return the column; the whole job is the training, if nothing else was measured."""
    if column.name not in ("wall_s", "elapsed", "duration"):
        return column
    assumed = f"{name!r} as the time to train"
    return column._replace(kind="measure", name="time_to_train", assumed=assumed)


def _is_needless(name: str, words: Set[str]) -> bool:
    """Whether a heading is ambiguous, and another column states one of its meanings.

    `runtime_min` is in minutes, unless there is `runtime_max` as well.
    """
    extreme = name.lower().endswith("_min") and f"{name.lower()[:-3]}max" in words
    word = vocabulary.plain_name(name)
    of_steps = word in vocabulary.RATES_OF_STEPS and "step_time" in words
    return extreme or of_steps or not words.isdisjoint(vocabulary.UNAMBIGUOUS.get(word, ()))


def _check_enough(found: Sequence[TableColumn], written: Sequence[str], where: str) -> None:
    names = ", ".join(written)
    if not any(column.kind == "size" for column in found):
        raise LogParseError(
            f"{where}: no column of a size; the columns are {names}",
            f"add nodes and gpus_per_node, or others of: {', '.join(vocabulary.SIZES)}",
        )
    if not any(column.name in (*vocabulary.RESULTS, *vocabulary.RATES_PER_GPU) for column in found):
        near = next(filter(None, (nearest(name, vocabulary.RESULTS) for name in written)), "")
        raise LogParseError(
            f"{where}: no column of a measurement{near}; the columns are {names}",
            f"add one of: {', '.join(vocabulary.RESULTS)} (times in seconds, rates over all ranks)",
        )


def _column(name: str, where: str) -> TableColumn:
    word, factor, unit = vocabulary.heading(name)
    if word in vocabulary.ASSUMED:
        meaning, said = vocabulary.ASSUMED[word]
        if meaning == "time_to_train" and factor < 1:
            meaning, said = "step_time", "the time of a step"
        return TableColumn("measure", meaning, factor, unit, f"{name!r} as {said}")
    if word in vocabulary.RATES_OF_STEPS:
        assumed = f"{name!r} as steps/s of the whole job"
        return TableColumn("measure", "step_time", 1.0, STEPS_PER_SECOND, assumed)
    measure, _, ending = word.rpartition("_")
    of_measure = vocabulary.plain_name(measure) in (*vocabulary.MEASURES, *vocabulary.ASSUMED)
    if word in vocabulary.SPREADS or (ending in vocabulary.SPREADS and of_measure):
        return TableColumn("spread", word)
    if word in vocabulary.COUNTS or (ending in vocabulary.COUNTS and of_measure):
        return TableColumn("count", word)
    if ending in vocabulary.EXTREMES and of_measure:
        return TableColumn("unused", word)
    bare = vocabulary.plain_name(name.replace("(", "[").partition("[")[0])
    if (
        word not in vocabulary.KNOWN
        and bare in (*vocabulary.MEASURES, *vocabulary.ASSUMED)
        and bare != vocabulary.plain_name(name)
    ):
        bare, _ = vocabulary.ASSUMED.get(bare, (bare, ""))
        ours = UNITS[vocabulary.PER_GPU.get(bare, bare)]
        known = ", ".join(vocabulary.FACTORS.get(ours, {ours: 1}))
        raise LogParseError(f"{where}: {name!r}: {bare} is in {ours}", f"allowed units: {known}")
    meant = vocabulary.misspelt(word, vocabulary.KNOWN)
    if meant:
        raise LogParseError(f"{where}: unknown column {name!r}; did you mean {meant!r}?", _ALLOWED)
    return TableColumn(kind_of(word), word, factor, unit)


def kind_of(word: str) -> ColumnKind:
    """Return the kind of a name."""
    if word in vocabulary.SIZES:
        return "size"
    if word in vocabulary.MEASURES:
        return "measure"
    if word in vocabulary.OF_RUN:
        return "run"
    if word in vocabulary.CONDITIONS:
        return "condition"
    return "unused" if word in vocabulary.UNUSED or not word else "axis"


LABEL = "scaling"
_WORDS: tuple[Scaling, ...] = get_args(Scaling)


def with_scaling(axes: dict[str, str]) -> dict[str, str]:
    """Return the axes of a row, with a validated scaling.

    Raises:
        ValueError: the scaling is not a known one.
    """
    if LABEL not in axes:
        return axes
    word = axes[LABEL].lower().removesuffix(" scaling")
    if word not in _WORDS:
        near = nearest(word, _WORDS)
        raise ValueError(
            f"{axes[LABEL]!r} is not a scaling{near}; allowed: {', '.join(_WORDS)}, or empty"
        )
    return {**axes, LABEL: word}


def declared_scaling(runs: Sequence[ExpectedRun]) -> tuple[list[ExpectedRun], Scaling | None]:
    """Return the scaling that all runs declare; if they declare two, each is a series."""
    regimes = {run.axes.get(LABEL) for run in runs} - {None}
    if len(regimes) != 1:
        return list(runs), None
    return [
        msgspec.structs.replace(run, axes={n: v for n, v in run.axes.items() if n != LABEL})
        for run in runs
    ], regimes.pop()


# Columns that only tell jobs with equal names or results apart.
REPETITION = ("repetition", "rep")


def table_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of tables: those of their files, and of the sheets of one workbook."""
    split = [sheet_of(path) for path in paths]
    stems = [file.stem for file, _ in split]
    return [
        f"{stem}:{sheet}" if sheet and stems.count(stem) > 1 else stem
        for stem, (_, sheet) in zip(stems, split, strict=True)
    ]


def run_names(
    table: ResultTable,
    stated: Sequence[str | None],
    before: str,
    others: Sequence[Mapping[str, str]],
) -> list[str]:
    """Return the name of each row, after `before`; `stated` are the cells of the column `run`.

    Rows with one name are distinguished by a column `repetition` among the `others`: `a-r1`,
    `a-r2` for two rows `a`, as runs of a study are called.

    Raises:
        LogParseError: two rows have one name.
    """
    names = [f"{before}{name or f'row {row}'}" for row, name in enumerate(stated, start=1)]
    counts = Counter(names)
    first: dict[str, int] = {}
    for row, (name, cells) in enumerate(zip(names, others, strict=True)):
        stated_numbers = [text for n, text in cells.items() if n.strip().lower() in REPETITION]
        if counts[name] > 1 and stated_numbers:
            names[row] = f"{name}-r{stated_numbers[0]}"
    for row, name in enumerate(names):
        if first.setdefault(name, row) != row:
            raise LogParseError(
                f"{table.where(row)}: a second run called {name!r}; the first is "
                f"{table.where(first[name])}",
                "give each row another name, or add a column `repetition`",
            )
    return names
