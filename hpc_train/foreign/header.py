"""The header of a foreign table -> whether it is one of results, and the meaning of its columns."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from hpc_train.base.errors import LogParseError, nearest
from hpc_train.base.metrics import UNITS
from hpc_train.logs import record as vocabulary

PREFIXED = re.compile(r"(metrics|summary|params|config|tags)[./](.+)", re.IGNORECASE)
# The columns that the page of a project of Weights & Biases always exports.
_OF_PROJECT = frozenset({"name", "state", "created", "runtime"})
_WALL = "wall_s"
# A row for each step of one run.
_OF_HISTORY = frozenset({"_step", "step", "epoch"})
_MEASURES = frozenset({*vocabulary.MEASURES, *vocabulary.ASSUMED})
RESULT_COLUMNS = frozenset({*vocabulary.RESULTS, *vocabulary.RATES_PER_GPU})
STEPS_PER_SECOND = "steps/s"


class TableColumn(NamedTuple):
    """Kind, name and unit of a column; `assumed` is what was assumed of its meaning.

    A rate of steps has the name `step_time`, and the unit `STEPS_PER_SECOND`.
    """

    kind: vocabulary.ColumnKind
    name: str
    factor: float = 1.0
    unit: str = ""
    assumed: str = ""


def plain_headings(names: Sequence[str]) -> tuple[str, ...]:
    """Return the headings without prefixes, empty for a column that states nothing of a run.

    A metric of a tracker that hpctrain does not know is a result, and no axis.
    """
    plain = [_plain(name.strip()) for name in names]
    if _OF_PROJECT.issubset(word.lower() for word in plain):
        words = {"runtime": _WALL, _WALL: ""}
        plain = [words.get(word.lower(), "" if "/" in word else word) for word in plain]
    return tuple(plain)


def _plain(name: str) -> str:
    if name.startswith("_"):
        return _WALL if name == "_runtime" else ""
    match = PREFIXED.fullmatch(name)
    if match is None:
        return name
    kind, rest = match[1].lower(), match[2].strip()
    known = vocabulary.plain_name(rest)
    is_setting = kind in ("params", "config")
    is_known = known in vocabulary.KNOWN or known in vocabulary.ASSUMED
    return rest if is_setting or (kind != "tags" and is_known) else ""


def names_a_result(names: Sequence[str], *, sized: bool = False) -> bool:
    """Whether a header is that of a table of results: it names a size or a result of a job.

    `sized`: it must name both, as only the first row of a table without a header can tell. A log
    with a row for each step or epoch is none, unless it states a size.
    """
    plain = set(map(vocabulary.plain_name, plain_headings(names)))
    has_size = not plain.isdisjoint(vocabulary.SIZES)
    if not has_size and not _OF_HISTORY.isdisjoint(name.strip().lower() for name in names):
        return False
    if sized:
        return has_size and not plain.isdisjoint({*RESULT_COLUMNS, *vocabulary.ASSUMED})
    known = (*vocabulary.SIZES, *vocabulary.RESULTS)
    return any(
        n in known or n in vocabulary.ASSUMED or vocabulary.misspelt(n, known) for n in plain
    )


def columns(written: Sequence[str], where: str) -> tuple[TableColumn, ...]:
    """Return the meaning of each column; an unknown name is an axis.

    Raises:
        LogParseError: a name is misspelt or duplicate, or no column has a size or a result.
    """
    if step := next((n for n in written if n.strip().lower() in ("step", "epoch")), ""):
        raise LogParseError(
            f"{where}: a table has one row for each job; the column {step!r} numbers the steps of "
            "a job",
            "state one mean of each job, without the warm-up, and call the column `steps` or "
            "`epochs` if it is the number of all steps or epochs",
        )
    names = plain_headings(written)
    words = frozenset(map(vocabulary.plain_name, names))
    found = [_column("" if _is_needless(name, words) else name, where) for name in names]
    # One loss and one accuracy: that of this name, else the first.
    for word in ("accuracy", "loss"):
        places = [place for place, column in enumerate(found) if column.name == word]
        kept = min(places, key=lambda place: names[place].strip().lower() != word, default=0)
        for place in places:
            if place != kept and names[place] != names[kept]:
                found[place] = TableColumn("unused", names[place])
    if not any(column.name in RESULT_COLUMNS for column in found):
        found = list(map(_as_training, found, written))
    if {column.name for column in found if column.kind == "size"} == {"nodes"}:
        found = list(map(_of_one_gpu, found, written))
    _check(found, written, where)
    return tuple(found)


def _as_training(column: TableColumn, name: str) -> TableColumn:
    """Return the column; the whole job is the training, if nothing else was measured."""
    if column.name not in (_WALL, "elapsed", "duration"):
        return column
    assumed = f"{name!r} as the time to train"
    return column._replace(kind="measure", name="time_to_train", assumed=assumed)


def _of_one_gpu(column: TableColumn, name: str) -> TableColumn:
    """Return the column; of equal nodes, how many GPUs they have does not change a speedup."""
    if column.name not in vocabulary.RATES_PER_GPU:
        return column
    assumed = (
        f"{name!r} as that of nodes of one GPU (no column gpus_per_node; speedups of equal nodes"
    )
    return column._replace(assumed=f"{assumed} do not depend on it)")


def _check(found: Sequence[TableColumn], written: Sequence[str], where: str) -> None:
    positions: dict[str, int] = {}
    for place, (column, name) in enumerate(zip(found, written, strict=True)):
        first = written[positions.setdefault(column.name, place)]
        if column.name and positions[column.name] != place:
            both = repr(name) if first == name else f"{first!r} as {name!r}"
            raise LogParseError(f"{where}: duplicate column {both}; keep one of them")
    shown = ", ".join(written)
    if not any(column.kind == "size" for column in found):
        raise LogParseError(
            f"{where}: no column of a size; the columns are {shown}",
            f"rename or add one of: {', '.join(vocabulary.SIZES)}",
        )
    if not any(column.name in RESULT_COLUMNS for column in found):
        near = next(filter(None, (nearest(name, vocabulary.RESULTS) for name in written)), "")
        raise LogParseError(
            f"{where}: no column of a measurement{near}; the columns are {shown}",
            f"rename or add one of: {', '.join(vocabulary.RESULTS)} (rates over all ranks; "
            "times in seconds, or with their unit: step_time [ms])",
        )


def _is_needless(name: str, words: frozenset[str]) -> bool:
    """Whether a heading is ambiguous, and another column states one of its meanings.

    `runtime_min` is in minutes, unless there is `runtime_max` as well.
    """
    extreme = name.lower().endswith("_min") and f"{name.lower()[:-3]}max" in words
    word = vocabulary.plain_name(name)
    of_steps = word in vocabulary.RATES_OF_STEPS and "step_time" in words
    return extreme or of_steps or not words.isdisjoint(vocabulary.UNAMBIGUOUS.get(word, ()))


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
    # A statistic stands alone, or after the name of its measurement.
    statistic = ending if vocabulary.plain_name(measure) in _MEASURES else word
    if statistic in vocabulary.SPREADS:
        return TableColumn("spread", word)
    if statistic in vocabulary.COUNTS:
        return TableColumn("count", word)
    if statistic != word and statistic in vocabulary.EXTREMES:
        return TableColumn("unused", word)
    bare = vocabulary.plain_name(name.replace("(", "[").partition("[")[0])
    if word not in vocabulary.KNOWN and bare in _MEASURES and bare != vocabulary.plain_name(name):
        bare, _ = vocabulary.ASSUMED.get(bare, (bare, ""))
        ours = UNITS[vocabulary.PER_GPU.get(bare, bare)]
        known = ", ".join(vocabulary.FACTORS.get(ours, {ours: 1}))
        unit = name.replace("(", "[").partition("[")[2].rstrip(")] ")
        raise LogParseError(
            f"{where}: {name!r}: {unit!r} is not a unit of {bare}", f"allowed: {known}, or no unit"
        )
    if meant := vocabulary.misspelt(word, vocabulary.KNOWN):
        raise LogParseError(
            f"{where}: unknown column {name!r}; did you mean {meant!r}?",
            f"allowed: {', '.join(vocabulary.KNOWN)}; a new axis needs a name that is not similar "
            "to these",
        )
    return TableColumn(vocabulary.kind_of(word), word, factor, unit)
