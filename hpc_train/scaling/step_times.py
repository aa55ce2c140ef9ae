"""Step times of nodes: by the same steps as those of runs."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.group_reductions import usable
from hpc_train.scaling.measurements import PER_RANK, after_warmup, measurements, numbered
from hpc_train.scaling.record_arrays import record_arrays

COLUMNS = ("run_id", "node", "step_time_s", "ranks", "measure")
STEP, COMPUTE = "step time", "compute time"
# Timers of work that a rank does without communication.
_ALONE = re.compile(r"(?:(?:forward|backward)-)?compute")
_NODE = ["alone", "run", "node"]
_SERIES = ["alone", "run"]


def node_frame(study: ExpectedStudy, records: pd.DataFrame | Iterable[Record]) -> pd.DataFrame:
    """Return the median over the measured steps of each node's time [s], if logs name nodes.

    The time of a step on a node is the mean over its ranks. Where ranks wait for one another in
    each step, all of them take as long as the slowest, and only what they do alone tells them
    apart: `measure` is `compute time`, the metric of this name or the sum of the timers
    forward-compute and backward-compute, where these are logged on all nodes, else `step time`. A
    line that names no node is of the node that other lines of its rank name.
    """
    names = [run.run_id for run in study.runs]
    own = numbered(record_arrays(records), names)
    rows = _timed(own)
    named = own.dropna(subset=["node", "rank"]).drop_duplicates(["run", "rank"])
    if own["node"].isna().all():
        return _frame(pd.DataFrame(columns=pd.Index(COLUMNS)))
    of_rank = rows[["run", "rank"]].merge(named[["run", "rank", "node"]], how="left")["node"]
    node = rows["node"].astype(object).fillna(of_rank.astype(object).set_axis(rows.index))
    rows = rows.assign(node=node).dropna(subset="node")
    by_rank = rows.groupby([*_NODE, "step", "who"])["value"].sum().reset_index()
    slowest = by_rank.groupby([*_SERIES, "step"])["value"].max().reset_index()
    kept = after_warmup(slowest.assign(steps=1), study.warmup, _SERIES)
    counted = by_rank.merge(kept[[*_SERIES, "step"]])
    by_node = counted.groupby([*_NODE, "step"])["value"].mean().groupby(_NODE).median()
    ranks = counted.groupby(_NODE)["who"].nunique()
    found = pd.DataFrame({"step_time_s": by_node, "ranks": ranks}).reset_index()
    # The compute times of runs that print them for every node, else the step times.
    nodes = found.groupby(["run", "alone"])["node"].nunique().unstack(fill_value=0)
    nodes = nodes.reindex(columns=[False, True], fill_value=0)
    found = found[found["alone"] == found["run"].map(nodes[True] >= nodes[False]).astype(bool)]
    places = {name: place for place, name in enumerate(own["node"].cat.categories)}
    found = found.assign(
        run_id=[names[run] for run in found["run"]],
        measure=found["alone"].map({True: COMPUTE, False: STEP}),
        place=found["node"].map(places),
    )
    return _frame(found.sort_values(["run", "place"], kind="stable", ignore_index=True))


def _timed(records: pd.DataFrame) -> pd.DataFrame:
    """Return the step times of single ranks, and the times that they were `alone`."""
    timers = records["variant"].astype(object).unique()
    alone = {name for name in timers if _ALONE.fullmatch(str(name).replace("_", "-"))}
    plain = records["variant"] == ""
    parts = (records["metric"] == "phase_time") & records["variant"].isin(alone)
    computed = parts | ((records["metric"] == "compute_time") & plain)
    chosen = computed | ((records["metric"] == "step_time") & plain)
    rows = measurements(records[chosen & (records["scope"] != "unknown")])
    rows = rows[rows["step"].notna() & (rows["scope"] == PER_RANK) & (rows["run"] >= 0)]
    return rows[usable(rows["value"])].assign(alone=rows["metric"] != "step_time")


def _frame(found: pd.DataFrame) -> pd.DataFrame:
    return found[list(COLUMNS)].astype({"step_time_s": "float64", "ranks": "int64"})
