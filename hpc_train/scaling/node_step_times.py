"""Records -> one row per run and node: how long the node's ranks took for a step."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.runs.expected_study import ExpectedStudy
from hpc_train.scaling.group_reductions import usable
from hpc_train.scaling.measurements import PER_RANK, Rows, once, stated
from hpc_train.scaling.record_arrays import NONE, Ints, RecordArrays, packed, record_arrays
from hpc_train.scaling.step_times import measured

COLUMNS = ("run_id", "node", "step_time_s", "ranks", "measure")
STEP, COMPUTE = "step time", "compute time"
# Timers of work that a rank does without communication.
_ALONE = re.compile(r"(?:(?:forward|backward)-)?compute")
_STEP = ["alone", "run", "node", "step"]
_NODE = ["alone", "run", "node"]


def node_frame(
    study: ExpectedStudy, records: RecordArrays | pd.DataFrame | Iterable[Record]
) -> pd.DataFrame:
    """Return the median over the measured steps of each node's time [s], if logs name nodes.

    The time of a step on a node is the mean over its ranks. Where ranks wait for one another in
    each step, all of them take as long as the slowest, and only what they do alone tells them
    apart: `measure` is `compute time`, the metric of this name or the sum of the timers
    forward-compute and backward-compute, where these are logged on all nodes, else `step time`. A
    line that names no node is of the node that other lines of its rank name.
    """
    fields = record_arrays(records)
    if not (fields.node.codes >= 0).any():
        return _frame(pd.DataFrame(columns=pd.Index(COLUMNS)))
    names = [run.run_id for run in study.runs]
    fields = fields._replace(run=fields.run.led_by(names))
    rows = _timed(fields, len(names))
    table = pd.DataFrame(
        {"alone": rows.kind > 0, "run": rows.run, "node": _nodes(fields, rows)}
        | {"step": rows.step, "who": rows.who, "value": rows.value}
    )
    by_rank = table[table["node"] >= 0].groupby([*_STEP, "who"])["value"].sum().reset_index()
    found = _of_one_measure(_medians(by_rank, study.warmup))
    found["run_id"] = [names[run] for run in found["run"]]
    found["node"] = [fields.node.names[node] for node in found["node"]]
    found["measure"] = np.where(found["alone"], COMPUTE, STEP)
    return _frame(found.sort_values(["run", "node"], kind="stable", ignore_index=True))


def _frame(found: pd.DataFrame) -> pd.DataFrame:
    typed: pd.DataFrame = found[list(COLUMNS)].astype({"step_time_s": "float64", "ranks": "int64"})
    return typed


def _timed(fields: RecordArrays, runs: int) -> Rows:
    """Return the step times (kind 0) and compute times (others) of single ranks."""
    parts = [name for name in fields.variant.names if _ALONE.fullmatch(name.replace("_", "-"))]
    plain = fields.variant.among([""]) == 0
    steps = (fields.metric.among(["step_time"]) == 0) & plain
    phases = fields.metric.among(["phase_time"]) == 0
    part = np.where(phases, fields.variant.among(parts), -1)
    alone = (fields.metric.among(["compute_time"]) == 0) & plain
    kinds = np.where(steps, 0, np.where(part >= 0, 1 + part, -1))
    kinds = np.where(alone, 1 + len(parts), kinds)
    rows = once(stated(fields, kinds))
    mine = rows.stepped & (rows.scope == PER_RANK) & (rows.run < runs)
    return rows.take(mine & usable(rows.value))


def _nodes(fields: RecordArrays, rows: Rows) -> Ints:
    """Return the number of each row's node, -1 if it is unknown."""
    own = fields.node.codes[rows.place].astype(np.int64)
    known = np.flatnonzero((fields.node.codes >= 0) & (fields.rank != NONE))
    if not len(known):
        return own
    run, rank = fields.run.codes[known].astype(np.int64), fields.rank[known]
    key = packed(np.concatenate([run, rows.run]), np.concatenate([rank, rows.rank]))
    ranks, first = np.unique(key[: len(known)], return_index=True)
    sought = key[len(known) :]
    at = np.minimum(np.searchsorted(ranks, sought), len(ranks) - 1)
    named = np.where(ranks[at] == sought, fields.node.codes[known[first[at]]], -1)
    return np.where(own >= 0, own, named)


def _medians(by_rank: pd.DataFrame, warmup: Warmup) -> pd.DataFrame:
    slowest = by_rank.groupby(["alone", "run", "step"])["value"].max().reset_index()
    series = packed(slowest["alone"].to_numpy(), slowest["run"].to_numpy())
    values, ones = slowest["value"].to_numpy(), np.ones(len(slowest), dtype=np.int64)
    kept = slowest[measured(series, slowest["step"].to_numpy(), values, ones, warmup)]
    counted = by_rank.merge(kept[["alone", "run", "step"]])
    by_node = counted.groupby(_STEP)["value"].mean().groupby(_NODE).median()
    ranks = counted.groupby(_NODE)["who"].nunique()
    medians: pd.DataFrame = pd.DataFrame({"step_time_s": by_node, "ranks": ranks}).reset_index()
    return medians


def _of_one_measure(found: pd.DataFrame) -> pd.DataFrame:
    """Keep the compute times of runs that print them for every node, else the step times."""
    nodes = found.groupby(["run", "alone"])["node"].nunique().unstack(fill_value=0)
    nodes = nodes.reindex(columns=[False, True], fill_value=0)
    better = found["run"].map(nodes[True] >= nodes[False]).astype(bool)
    kept: pd.DataFrame = found[found["alone"] == better].copy()
    return kept
