"""Conditions of runs: the recorded fields, and the differences between runs of a series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from hpc_train.errors import ReportError, nearest
from hpc_train.model.scaling_input import ExpectedRun
from hpc_train.tables.group_values import NAN, levels_of, packed, starts
from hpc_train.tables.record_arrays import Ints, RecordArrays

# The most informative first: a series is named after the first field that differs.
FIELDS = (
    "parser", "counted", "model", "parameters", "data", "sequence_length", "precision", "layout",
    "tensor_parallel", "pipeline_parallel", "torch", "cuda", "nccl", "nccl2", "nccl_plugin",
    "partition", "gpu", "container", "commit", "dirty", "command", "template", "modules",
)  # fmt: skip
# Padding of the vocabulary grows with tensor parallelism.
_NEAR = {"parameters": 0.05}
_AXIS = "axis."


def fields_of(runs: pd.DataFrame) -> tuple[str, ...]:
    """Return the fields that at least one run recorded, the usual ones first."""
    if "conditions" not in runs:
        return ()
    seen = {field for own in runs["conditions"] if isinstance(own, Mapping) for field in own}
    usual = [field for field in FIELDS if field in seen]
    return (*usual, *sorted(seen.difference(FIELDS)))


def compared(runs: pd.DataFrame, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that must match: all but those that are allowed to differ or are axes.

    An axis sets a field whose name is the axis' own or its last word: `training.precision`.

    Raises:
        ReportError: a field that is allowed to differ does not exist.
    """
    fields = fields_of(runs)
    known = dict.fromkeys((*FIELDS, *fields))
    for name in allowed:
        if name not in known:
            raise ReportError(
                f"--allow-mixed {name}: no such field{nearest(name, known)}",
                f"allowed: {', '.join(known)}",
            )
    axes = [str(name).removeprefix(_AXIS) for name in runs if str(name).startswith(_AXIS)]
    free = {*allowed, *axes, *(axis.rpartition(".")[2] for axis in axes)}
    return tuple(field for field in fields if field not in free)


def texts(runs: pd.DataFrame, field: str) -> list[str | None]:
    """Return the recorded value of a field for each run, None if there is none."""
    return [
        str(own[field]) if isinstance(own, Mapping) and own.get(field) not in (None, "") else None
        for own in runs["conditions"]
    ]


def levels(field: str, values: Sequence[str | None]) -> Ints:
    """Number the different values of a field; -1 if there is none.

    Numbers of parameters count as the same within 5 %.
    """
    near = _NEAR.get(field)
    if near is not None:
        sizes = np.array([_number(value) for value in values], dtype=np.float64)
        if np.isnan(sizes).sum() == list(values).count(None):
            return levels_of(sizes, near)
    return pd.factorize(np.array(values, dtype=object))[0].astype(np.int64)


def merged(runs: pd.DataFrame, places: Ints, fields: Sequence[str]) -> dict[str, str]:
    """Return the first recorded value of each field among some runs."""
    found: dict[str, str] = {}
    if fields:
        for own in runs["conditions"].iloc[places]:
            if isinstance(own, Mapping):
                found = {**own, **found}
    return {field: str(found[field]) for field in fields if found.get(field) not in (None, "")}


def difference(
    own: Mapping[str, str], other: Mapping[str, str], fields: Sequence[str]
) -> str | None:
    """Return the first field that both sets of conditions contain with different values."""
    for field in fields:
        if field in own and field in other:
            one, two = levels(field, (own[field], other[field]))
            if one != two:
                return field
    return None


def _number(text: str | None) -> float:
    try:
        value = float(text or NAN)
    except ValueError:
        return NAN
    return value if value > 0 else NAN


def conditions_of(fields: RecordArrays, runs: Sequence[ExpectedRun]) -> list[dict[str, str]]:
    """Return the recorded conditions of each run, updated with those in its log: NAME=VALUE.

    The runs of the records are numbered as `runs` are. If the ranks of a run print different
    values, all are listed: `2.4 / 2.5`. `parameters` are those that a log counts, unless the runs
    state them.
    """
    sizes = _parameters(fields, len(runs))
    found = [
        ({"parameters": f"{sizes[i]:.0f}"} if i in sizes else {}) | dict(run.conditions)
        for i, run in enumerate(runs)
    ]
    if "condition" not in fields.metric.names:
        return found
    run = fields.run.codes
    chosen = np.flatnonzero((fields.metric.among(["condition"]) == 0) & (run < len(runs)))
    key = packed(run[chosen], fields.variant.codes[chosen])
    chosen = chosen[np.argsort(key, kind="stable")]
    chosen = chosen[starts(run[chosen], fields.variant.codes[chosen])]
    printed: dict[tuple[int, str], set[str]] = {}
    for one, code in zip(run[chosen].tolist(), fields.variant.codes[chosen].tolist(), strict=True):
        name, equals, value = fields.variant.names[code].partition("=")
        if equals and name:
            printed.setdefault((one, name), set()).add(value)
    for (one, name), values in printed.items():
        found[one][name] = " / ".join(sorted(values))
    return found


def _parameters(fields: RecordArrays, runs: int) -> dict[int, float]:
    """Return the size of each run's model: the sum of its parts, each counted once."""
    run = fields.run.codes
    chosen = np.flatnonzero((fields.metric.among(["parameters"]) == 0) & (run < runs))
    names = zip(run[chosen].tolist(), fields.variant.codes[chosen].tolist(), strict=True)
    parts = dict(zip(names, fields.value[chosen].tolist(), strict=True))
    found: dict[int, float] = {}
    for (one, _), count in parts.items():
        if 0 < count < np.inf:
            found[one] = found.get(one, 0.0) + count
    return found
