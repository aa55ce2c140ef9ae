"""The header of somebody's table -> what each of its columns is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from hpc_train.errors import LogParseError, nearest
from hpc_train.model.heading import FACTORS, heading, plain_name
from hpc_train.model.record import UNITS
from hpc_train.model.stated import (
    AMBIGUOUS,
    CONDITIONS,
    KNOWN,
    MEASURES,
    OF_RUN,
    PER_GPU,
    RESULTS,
    SIZES,
    UNUSED,
    misspelt,
)
from hpc_train.records.result_table import ResultTable

Kind = Literal["size", "measure", "condition", "axis", "unused", "run"]
_ALLOWED = f"allowed: {', '.join(KNOWN)}; an axis of one's own needs a name unlike these"


class Column(NamedTuple):
    """What the cells of a column are, of what name, and in which unit where it is not ours."""

    kind: Kind
    name: str
    factor: float = 1.0
    unit: str = ""


def columns(table: ResultTable) -> tuple[Column, ...]:
    """Return what each column is: a name that is not known is an axis.

    Raises:
        LogParseError: a name is misspelt or stands there twice, or no column has a size, or a
            result.
    """
    where = f"{table.path}:{table.line}"
    found = tuple(_column(name, where) for name in table.names)
    seen: dict[str, int] = {}
    for place, (column, name) in enumerate(zip(found, table.names, strict=True)):
        first = table.names[seen.setdefault(column.name, place)]
        if column.name and seen[column.name] != place:
            both = repr(name) if first == name else f"{first!r} as {name!r}"
            raise LogParseError(f"{where}: the column {both} stands here twice; keep one of them")
    _check_enough(found, table.names, where)
    return found


def _check_enough(found: Sequence[Column], written: Sequence[str], where: str) -> None:
    names = ", ".join(written)
    if not any(column.kind == "size" for column in found):
        raise LogParseError(
            f"{where}: no column says how large a job was; the columns are {names}",
            f"add nodes and gpus_per_node, or others of: {', '.join(SIZES)}",
        )
    if not any(column.name in (*RESULTS, *PER_GPU) for column in found):
        near = next(filter(None, (nearest(name, RESULTS) for name in written)), "")
        raise LogParseError(
            f"{where}: no column of a measurement{near}; the columns are {names}",
            f"add one of: {', '.join(RESULTS)} (times in seconds, rates over all ranks)",
        )


def _column(name: str, where: str) -> Column:
    word, factor, unit = heading(name)
    if word in AMBIGUOUS:
        raise LogParseError(f"{where}: {name!r} can mean several things; call it {AMBIGUOUS[word]}")
    bare = plain_name(name.replace("(", "[").partition("[")[0])
    if word not in KNOWN and bare in MEASURES and bare != plain_name(name):
        ours = UNITS[PER_GPU.get(bare, bare)]
        known = ", ".join(FACTORS.get(ours, {ours: 1}))
        raise LogParseError(f"{where}: {name!r}: {bare} is in {ours}", f"allowed units: {known}")
    meant = misspelt(word, KNOWN)
    if meant:
        raise LogParseError(f"{where}: unknown column {name!r}; did you mean {meant!r}?", _ALLOWED)
    return Column(kind_of(word), word, factor, unit)


def kind_of(word: str) -> Kind:
    """Return what a name stands for."""
    if word in SIZES:
        return "size"
    if word in MEASURES:
        return "measure"
    if word in OF_RUN:
        return "run"
    if word in CONDITIONS:
        return "condition"
    return "unused" if word in UNUSED or not word else "axis"
