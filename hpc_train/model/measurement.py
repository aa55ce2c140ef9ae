"""What a scaling table is made from: every run that was asked for, and how each one ended."""

from __future__ import annotations

from typing import Any

from hpc_train.model.plan import Topology
from hpc_train.model.study import Gates, Scaling, Warmup
from hpc_train.model.value import Value

MISSING = "MISSING"


class ExpectedRun(Value, frozen=True, kw_only=True):
    """One run of a study, or one foreign log; `state` is a JobState or MISSING.

    `axes` holds the study's axis values, so that runs which differ in more than their size form
    separate series. `topology` is None where nobody recorded it (a foreign log). `problem` says
    in one line why a run has no result (`rank 1 on host a: exit code 3`). `transport` is the short
    word for what NCCL used (`IB+GDR`, `sockets`), empty where no log says it.
    `ranks`: so many are named, at least, by logs of which nobody recorded a topology.
    """

    run_id: str
    axes: dict[str, Any]
    repetition: int
    topology: Topology | None
    state: str
    problem: str = ""
    transport: str = ""
    ranks: int = 0


class ExpectedStudy(Value, frozen=True, kw_only=True):
    """The study as it was asked for; `scaling` is None where nobody declared it."""

    name: str
    runs: tuple[ExpectedRun, ...]
    baseline: dict[str, Any]
    scaling: Scaling | None
    warmup: Warmup
    gates: Gates
    notes: tuple[str, ...] = ()
