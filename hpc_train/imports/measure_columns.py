"""The columns of measurements of a table -> their values, each checked, in hpctrain's units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpc_train.imports.header import TableColumn
from hpc_train.imports.number_cells import MOST, number
from hpc_train.imports.table_cells import Floats, Ints
from hpc_train.model.record import UNITS
from hpc_train.model.result_columns import BATCH, PER_GPU, RATES_PER_GPU, RESULTS

RESULT_COLUMNS = (*RESULTS, *RATES_PER_GPU)
_FRACTIONS = ("accuracy", "mfu")
_ANY_SIGN = ("loss",)
_SCOPES = {"memory": "per_rank", "mfu": "per_gpu", **dict.fromkeys(PER_GPU, "per_gpu")}
SCOPES = ("global", "per_rank", "per_gpu")


class Measures(NamedTuple):
    """Values by the name of their column, NaN if absent, in order; `written` are the numbers in
    the cells, before a unit is converted."""

    values: dict[str, Floats]
    written: dict[str, Floats]


def value_of(column: TableColumn, text: str) -> float:
    """Return the value of a cell in hpctrain's unit.

    Raises:
        ValueError: it is no number, or not one that this measurement can have.
    """
    name = column.name
    ours = UNITS.get(PER_GPU.get(name, name), "s")
    value = number(text, column.unit or ours) * column.factor
    if name in _FRACTIONS and not 0 <= value <= 1:
        raise ValueError(f"{text} must be a fraction, from 0 to 1")
    if name in (*RESULT_COLUMNS, BATCH) and value <= 0:
        raise ValueError(f"{text} must be above 0; leave the cell empty if nothing was measured")
    if value < 0 and name not in _ANY_SIGN:
        raise ValueError(f"{text} must not be negative")
    return value


def refused(column: TableColumn, written: Floats) -> NDArray[np.bool_]:
    """Return which cells of a column `value_of` refuses; `written` are their numbers."""
    name = column.name
    with np.errstate(over="ignore", invalid="ignore"):
        value = written * column.factor
        known = ~np.isnan(written)
        wrong = np.abs(written) > MOST
        if name in _FRACTIONS:
            wrong |= ~((value >= 0) & (value <= 1))
        if name in (*RESULT_COLUMNS, BATCH):
            wrong |= value <= 0
        elif name not in _ANY_SIGN:
            wrong |= value < 0
    found: NDArray[np.bool_] = known & wrong
    return found


def with_rate(measures: Measures) -> Measures:
    """Add samples_per_second = global_batch_size / step_time where only these two are given."""
    values = measures.values
    if BATCH not in values or "step_time" not in values:
        return measures
    with np.errstate(over="ignore"):
        rate = values[BATCH] / values["step_time"]
    stated = values.get("samples_per_second", rate)
    both = np.where(np.isnan(stated), rate, stated)
    return measures._replace(values={**values, "samples_per_second": both})


class MeasuredRecords(NamedTuple):
    """The measurements of one table in order of rows; `row`, `metric` and `scope` are indexes."""

    metrics: list[str]
    row: Ints
    metric: Ints
    scope: NDArray[np.int8]
    value: Floats


def records_of(measures: Measures, gpus: Floats) -> MeasuredRecords:
    """Return the measurements; `gpus` are those of each row, NaN if unknown.

    A rate of one GPU is multiplied by the GPUs, unless the table has that of all in the same row.
    """
    columns = list(_scoped(measures, gpus))
    metrics = list(dict.fromkeys(metric for metric, _, _ in columns))
    value = np.stack([value for _, _, value in columns], axis=1).ravel()
    scope = np.stack([scope for _, scope, _ in columns], axis=1).ravel()
    number = np.array([metrics.index(metric) for metric, _, _ in columns], dtype=np.int64)
    row, metric = np.repeat(np.arange(len(gpus)), len(columns)), np.tile(number, len(gpus))
    known = ~np.isnan(value)
    if not known.all():
        row, metric, scope, value = row[known], metric[known], scope[known], value[known]
    return MeasuredRecords(metrics, row, metric, scope, value)


def _scoped(measures: Measures, gpus: Floats) -> Iterator[tuple[str, NDArray[np.int8], Floats]]:
    """Yield metric, scope and values of each column."""
    for name, value in measures.values.items():
        metric = PER_GPU.get(name, name)
        scope = np.full(len(value), SCOPES.index(_SCOPES.get(name, "global")), dtype=np.int8)
        if name in PER_GPU and metric != "tflops":
            # One process may drive several GPUs.
            absent = np.isnan(measures.values[metric]) if metric in measures.values else True
            whole = (gpus > 0) & absent
            with np.errstate(over="ignore"):
                value = np.where(whole, value * gpus, value)
            scope[whole] = SCOPES.index("global")
        yield metric, scope, value
