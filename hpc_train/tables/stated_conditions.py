"""Expected runs and records -> the conditions of each run, by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hpc_train.model.measurement import ExpectedRun
from hpc_train.tables.columns import Columns
from hpc_train.tables.groups import packed, starts


def conditions_of(fields: Columns, runs: Sequence[ExpectedRun]) -> list[dict[str, str]]:
    """Return what is recorded of each run, and over it what its log says: NAME=VALUE.

    The runs of the records are numbered as `runs` are. Where the ranks of one run say different
    things, all of them stand there: `2.4 / 2.5`. `parameters` are those that a log counts, unless
    they are stated.
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
    said: dict[tuple[int, str], set[str]] = {}
    for one, code in zip(run[chosen].tolist(), fields.variant.codes[chosen].tolist(), strict=True):
        name, equals, value = fields.variant.names[code].partition("=")
        if equals and name:
            said.setdefault((one, name), set()).add(value)
    for (one, name), values in said.items():
        found[one][name] = " / ".join(sorted(values))
    return found


def _parameters(fields: Columns, runs: int) -> dict[int, float]:
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
