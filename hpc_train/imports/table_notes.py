"""A foreign table -> the notes on how it was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpc_train.imports.csv_table import ResultTable
from hpc_train.imports.exported_headings import is_prefixed
from hpc_train.imports.header import TableColumn
from hpc_train.imports.run_names import REPETITION
from hpc_train.model.result_columns import BATCH, RATES_PER_GPU, RESULTS

_RATES = RESULTS[:2]
_MOST_NAMED = 6


def table_notes(
    table: ResultTable,
    meanings: Sequence[TableColumn],
    distinct: Mapping[int, int],
    measured: Sequence[Mapping[str, float]],
) -> Iterator[str]:
    """Yield how the columns are read, which are not used, and what the rows lack.

    `distinct` is the number of different texts of axes by their place, and `measured` the values of
    each row by the name of their column.
    """
    yield f"{table.path}: each row is a run; sizes, states and values are taken from the table."
    yield from table.notes
    read = [
        f"{name!r} is read as {column.name}{_unit(column)}"
        for name, column in zip(table.names, meanings, strict=True)
        if column.unit or (column.name in _RATES and name.strip().lower() != column.name)
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
    if axes := list(_unexpected_axes(table, meanings, distinct)):
        more = f" and {len(axes) - _MOST_NAMED} more" if len(axes) > _MOST_NAMED else ""
        yield (
            f"{table.path}: each value is a separate series in {', '.join(axes[:_MOST_NAMED])}"
            f"{more}; leave out a column that is a result."
        )
    alone = _step_times_alone(measured)
    if alone:
        yield (
            f"{table.path}: {alone} of {len(table.rows)} rows have a step_time without "
            "global_batch_size: how much was done in a step is not known, nor whether this is "
            "strong or weak scaling; add the column global_batch_size."
        )


def _step_times_alone(measured: Sequence[Mapping[str, float]]) -> int:
    """Return the number of rows with a step time from which no rate follows."""
    others = {*RESULTS, *RATES_PER_GPU, BATCH} - {"step_time"}
    return sum("step_time" in row and others.isdisjoint(row) for row in measured)


def _unexpected_axes(
    table: ResultTable, meanings: Sequence[TableColumn], distinct: Mapping[int, int]
) -> Iterator[str]:
    """Yield the axes that a person may not have meant, with the number of their values."""
    for place, (name, column) in enumerate(zip(table.names, meanings, strict=True)):
        if column.kind != "axis":
            continue
        values = distinct[place]
        # No two rows are in one series.
        alone = 2 < values == len(table.rows)
        if alone or (values > 1 and is_prefixed(name)):
            yield f"{name!r} ({values} values)"


def _unit(column: TableColumn) -> str:
    return f" in {column.unit}" if column.unit else " over all ranks"
