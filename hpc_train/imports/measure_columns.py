"""The measurements in a row of a table -> their values, each checked, in hpctrain's units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpc_train.imports.header import TableColumn
from hpc_train.imports.number_cells import number
from hpc_train.model.record import UNITS, Scope
from hpc_train.model.result_columns import BATCH, PER_GPU, RATES_PER_GPU, RESULTS

RESULT_COLUMNS = (*RESULTS, *RATES_PER_GPU)
_FRACTIONS = ("accuracy", "mfu")
_ANY_SIGN = ("loss",)
_SCOPES: Mapping[str, Scope] = {
    "memory": "per_rank", "mfu": "per_gpu", **dict.fromkeys(PER_GPU, "per_gpu")
}  # fmt: skip


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


def with_rate(values: dict[str, float]) -> dict[str, float]:
    """Add samples_per_second = global_batch_size / step_time where only these two are given."""
    if BATCH in values and "step_time" in values and "samples_per_second" not in values:
        return {**values, "samples_per_second": values[BATCH] / values["step_time"]}
    return values


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
