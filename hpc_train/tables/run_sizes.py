"""Expected runs -> size of each, as planned, as stated, or from its log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.study import series_label, size_of
from hpc_train.tables.group_reductions import Floats
from hpc_train.tables.record_arrays import Ints

NAMES = ("nodes", "gpus_per_node", "tasks_per_node")
# A larger number in a log is an error.
_MOST_RANKS = 10**9


class Sizes(NamedTuple):
    """Sizes of each run, NaN if unknown.

    `planned` are the ranks of the plan or those stated by a user, else NaN.
    """

    nodes: Floats
    gpus_per_node: Floats
    tasks_per_node: Floats
    gpus: Floats
    cpus_per_task: Floats
    ranks: Floats
    planned: Floats


def sizes_of(runs: Sequence[ExpectedRun], world: Floats, named: Ints) -> Sizes:
    """Return the sizes of runs.

    `world` is the number of ranks that a log states, `named` the number of ranks that lines name.
    A value stated by a user takes precedence over the log.
    """
    stated = [[_stated(run, name) for run in runs] for name in NAMES]
    gpus = [_gpus(run, nodes, each) for run, nodes, each, _ in zip(runs, *stated, strict=True)]
    cpus = [run.topology.cpus_per_task if run.topology else None for run in runs]
    # Ranks that only repeated a summary have no record.
    logged = np.maximum(named, np.array([run.ranks for run in runs], dtype=np.int64))
    likely = (world >= 1) & (world <= _MOST_RANKS)
    known = np.where(likely, np.floor(world), np.where(logged > 0, logged, np.nan))
    planned = np.array([_planned(run) for run in runs], dtype=np.float64)
    ranks = np.where(np.isnan(planned), known, planned)
    sizes = (np.array(column, dtype=np.float64) for column in (*stated, gpus, cpus))
    return Sizes._make([*sizes, ranks, planned])


def series_of(runs: Sequence[ExpectedRun], ranks: Floats) -> list[str]:
    """Return the name of each run's series.

    Logs without a number of ranks are not assumed to have the same size.
    """
    alone = np.isnan(ranks) & (len(runs) > 1)
    return [
        run.run_id
        if is_alone and not (run.topology or run.axes or run.sizes)
        else series_label(run.axes)
        for run, is_alone in zip(runs, alone.tolist(), strict=True)
    ]


def _stated(run: ExpectedRun, name: str) -> int | None:
    if run.topology:
        size: int = getattr(run.topology, name)
        return size
    return run.sizes[name] if name in run.sizes else size_of(run.axes, name)


def _gpus(run: ExpectedRun, nodes: int | None, each: int | None) -> int | None:
    if nodes is None or each is None:
        return run.sizes.get("gpus")
    return nodes * each


def _planned(run: ExpectedRun) -> float:
    if run.topology:
        return run.topology.world_size
    each, nodes = run.sizes.get("tasks_per_node"), run.sizes.get("nodes")
    product = each * nodes if each and nodes else float("nan")
    return run.sizes.get("ranks", product)
