"""Input of a scaling table: every requested run, and its end."""

from collections.abc import Sequence
from typing import Any, Literal

from hpc_train.base.value import Value
from hpc_train.jobs.job import Topology
from hpc_train.jobs.study import Gates, RefusedPoint, Scaling, Warmup
from hpc_train.runs.submission import JobState

Bands = Literal["pointwise", "simultaneous"]
# Prefix of the problem of a run whose log states another size than the recorded one.
# What a line with a rate does not say, and a person has to.
OF_WHICH = "of the job or of each rank?"
CONTRADICTED = "the log says world_size "
MISSING = "MISSING"
EXCLUDED = "EXCLUDED"
_UNFINISHED = frozenset(state.value for state in JobState if state.active)


def state_sizes(logs: int) -> str:
    """Return what states the sizes of so many logs, for an advice."""
    numbers = ",".join("N" * min(logs, 4)) + ",…" * (logs > 4)
    return (
        f"state it: hpctrain report LOG{'…' * (logs > 1)} --gpus {numbers} (the number of GPUs of "
        f"{'each log, in their order' if logs > 1 else 'the log'}; --nodes, --ranks likewise)"
    )


class ExpectedRun(Value, frozen=True, kw_only=True):
    """One run of a study, or one foreign log; `state` is a JobState or MISSING.

    `axes` holds the study's axis values, so that runs which differ in more than their size form
    separate series. `topology` is None if it was not recorded (a foreign log). `problem` is the
    reason on one line why a run has no result (`rank 1 on host a: exit code 3`). `transport` is the
    short name of NCCL's transport (`IB+GDR`, `sockets`), empty if no log states it. `ranks`: one
    more than the highest rank that a foreign log names; there may be more ranks.

    `sizes` are those that a person stated for a log or a row (`nodes`, `gpus_per_node`,
    `tasks_per_node`, `ranks`). `conditions` are the recorded values that must match in a series
    (`torch`, `partition`, `commit`), by name. A run is EXCLUDED by a person; `problem` is then the
    given reason. `restarts` counts requeues, and `lost_to_restarts_s` is the time [s] that they
    cost; `wall_s` is the duration of the job in seconds, all its starts together, in any state.
    `started`, in seconds since the epoch, is its first start that is known. Runs of one `block`
    followed one another in one allocation, with one run of each point; it is empty if that is not
    known. `node_list` are the names of all its nodes, sorted and with commas between them; empty if
    they are not known.
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
    lost_to_restarts_s: float | None = None
    wall_s: float | None = None
    started: float | None = None
    block: str = ""
    node_list: str = ""


class ExpectedStudy(Value, frozen=True, kw_only=True):
    """The requested study; `scaling` is None if it was not declared.

    `allow_mixed` names the conditions that a person allowed to differ within a series.
    `price_per_gpu_hour` is in `currency`, None if the site states none. `bands` says whether each
    interval has the stated level, or all intervals of a series together. `site_unknown` is the
    reason why the gates of the site are unknown. `batch` are the samples of a step that a person
    stated: of all ranks, of each if `scaling` is weak. `asked` are the words that a next command
    repeats. `guessed` says which logs the generic parser read, with an example. `refused` points
    cannot run.
    """

    name: str
    runs: Sequence[ExpectedRun]
    baseline: dict[str, Any]
    scaling: Scaling | None
    warmup: Warmup
    gates: Gates
    notes: tuple[str, ...] = ()
    allow_mixed: tuple[str, ...] = ()
    price_per_gpu_hour: float | None = None
    currency: str = ""
    bands: Bands = "pointwise"
    site_unknown: str = ""
    batch: float | None = None
    asked: str = ""
    guessed: str = ""
    refused: tuple[RefusedPoint, ...] = ()

    @property
    def unfinished(self) -> tuple[ExpectedRun, ...]:
        """Return the runs that are pending or running, with which a report is partial."""
        return tuple(run for run in self.runs if run.state in _UNFINISHED)


def undeclared(
    name: str,
    runs: Sequence[ExpectedRun],
    warmup: Warmup | None = None,
    notes: tuple[str, ...] = (),
) -> ExpectedStudy:
    """Return a study without declarations."""
    return ExpectedStudy(
        name=name,
        runs=runs,
        baseline={},
        scaling=None,
        warmup=warmup or Warmup(),
        gates=Gates(),
        notes=notes,
    )
