"""What a scaling table is made from: every run that was asked for, and how each one ended."""

from __future__ import annotations

from typing import Any, Literal

from hpc_train.model.plan import Topology
from hpc_train.model.study import Gates, Scaling, Warmup
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value

IntervalKind = Literal["welch", "fieller", "bootstrap"]
INTERVALS: dict[IntervalKind, str] = {
    "welch": "Welch on logarithms",
    "fieller": "Fieller",
    "bootstrap": "percentile bootstrap of means",
}
# So begins the problem of a run whose log says another size than the one that is known.
CONTRADICTED = "the log says world_size "
MISSING = "MISSING"
EXCLUDED = "EXCLUDED"
_UNFINISHED = frozenset(state.value for state in JobState if state.active)


class ExpectedRun(Value, frozen=True, kw_only=True):
    """One run of a study, or one foreign log; `state` is a JobState or MISSING.

    `axes` holds the study's axis values, so that runs which differ in more than their size form
    separate series. `topology` is None where nobody recorded it (a foreign log). `problem` says
    in one line why a run has no result (`rank 1 on host a: exit code 3`). `transport` is the short
    word for what NCCL used (`IB+GDR`, `sockets`), empty where no log says it.
    `ranks`: so many are named, at least, by logs of which nobody recorded a topology.

    `sizes` are those that a person stated of a log or a row (`nodes`, `gpus_per_node`,
    `tasks_per_node`, `ranks`). `conditions` are what has to be the same in a series (`torch`,
    `partition`, `commit`), by name, as far as it is recorded. A run is EXCLUDED when a person says
    so; `problem` is then the reason that was given. `restarts` counts requeues; `wall_s` is how
    long the job ran, in seconds, whatever became of it.
    """

    run_id: str
    axes: dict[str, Any]
    repetition: int
    topology: Topology | None
    state: str
    problem: str = ""
    transport: str = ""
    ranks: int = 0
    sizes: dict[str, int] = {}
    conditions: dict[str, str] = {}
    restarts: int = 0
    wall_s: float | None = None


class ExpectedStudy(Value, frozen=True, kw_only=True):
    """The study as it was asked for; `scaling` is None where nobody declared it.

    `allow_mixed` names the conditions that may differ within a series because a person says so.
    `price_per_gpu_hour` is in `currency`, None where the site states none. `interval` is that of
    the ratios of points. `site_unknown` says why nobody knows which gates the site has.
    """

    name: str
    runs: tuple[ExpectedRun, ...]
    baseline: dict[str, Any]
    scaling: Scaling | None
    warmup: Warmup
    gates: Gates
    notes: tuple[str, ...] = ()
    allow_mixed: tuple[str, ...] = ()
    price_per_gpu_hour: float | None = None
    currency: str = ""
    interval: IntervalKind = "welch"
    site_unknown: str = ""

    @property
    def unfinished(self) -> tuple[ExpectedRun, ...]:
        """The runs that wait or still run: with them, a report is a partial one."""
        return tuple(run for run in self.runs if run.state in _UNFINISHED)
