"""The runs that a study or job requests: their last attempts, ends, copies, and missing ones."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from hpc_train.base.errors import StoreError
from hpc_train.base.values import Value
from hpc_train.jobs.job import Topology
from hpc_train.jobs.study import Gates, RefusedPoint, Scaling, Warmup
from hpc_train.runs.nodes import nodes_of
from hpc_train.runs.run import JobStart, JobState, JobStatus, Run, RunName, StudyManifest
from hpc_train.runs.run_folders import read_study

# Prefix of the problem of a run whose log states another size than the recorded one.
# What a line with a rate does not say, and a person has to.
OF_EACH_RANK = "if each rank prints its own: --rates rank"
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
    `batch` are the samples of a step that a person stated: of all ranks, of each if `scaling` is
    weak. `asked` are the words that a next command repeats. `guessed` says which logs the generic
    parser read, with an example. `assumed` is how ambiguous headings and cells of a table were
    read. `refused` points cannot run.
    """

    name: str
    runs: Sequence[ExpectedRun]
    baseline: dict[str, Any] = {}
    scaling: Scaling | None = None
    warmup: Warmup = Warmup()
    gates: Gates = Gates()
    notes: tuple[str, ...] = ()
    allow_mixed: tuple[str, ...] = ()
    batch: float | None = None
    asked: str = ""
    guessed: str = ""
    assumed: str = ""
    refused: tuple[RefusedPoint, ...] = ()

    @property
    def unfinished(self) -> tuple[ExpectedRun, ...]:
        """Return the runs that are pending or running, with which a report is partial."""
        return tuple(run for run in self.runs if run.state in _UNFINISHED)


def latest_attempts(runs: Sequence[Run]) -> dict[str, Run]:
    """Return `<stem>-r<repetition>` -> its last attempt."""
    named = [(name, run) for run in runs if (name := RunName.parse(run.folder.run_id))]
    named.sort(key=lambda pair: pair[0].attempt)
    return {f"{name.stem}-r{name.repetition}": run for name, run in named}


def missing_runs(home: Path, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the ids of the requested runs of a study without a folder."""
    try:
        study = read_study(home)
    except StoreError as failure:
        logging.getLogger(__name__).warning("%s, so missing runs are unknown", failure.message)
        return ()
    if study is None:
        return ()
    latest = latest_attempts(runs)
    return tuple(name for name, _, _ in study.requested() if name not in latest)


_NEVER = "never submitted, or its folder was removed"
# Replicates inside one allocation vary less than separate jobs.
_NESTED = (
    "placement nested: the runs used the same nodes, inside one allocation (or one per "
    "submission); the intervals do not include differences between allocations"
)


def expected_study(
    manifest: StudyManifest, runs: Sequence[Run], problem_of: Callable[[Run], str]
) -> ExpectedStudy:
    """List every requested run of the study, including missing ones.

    `problem_of` returns why a run has no result, or an empty string.
    """
    latest = latest_attempts(runs)
    nested = manifest.spec.placement == "nested"
    turns = ((run, int(name.rpartition("-r")[2])) for name, run in latest.items())
    blocks = run_blocks(turns) if nested else {}
    expected = [
        ExpectedRun(
            run_id=run.folder.run_id if run else name,
            axes=point.axes,
            repetition=repetition,
            topology=point.topology,
            state=run.state.value if run else MISSING,
            problem=problem_of(run) if run else _NEVER,
            block=blocks.get(run.folder.run_id, "") if run else "",
            conditions={name: str(it) for name, it in manifest.spec.conditions.items()},
            **_of_job(run),
        )
        for name, point, repetition in manifest.requested()
        for run in (latest.get(name),)
    ]
    listed = {run.run_id for run in expected}
    others = [run.folder.run_id for run in runs if run.folder.run_id not in listed]
    notes = [_NESTED] if nested else []
    notes += [f"{run.folder.run_id}: {run.problem}" for run in runs if run.manifest is None]
    if others:
        shown = ", ".join(others[:6]) + (" …" if len(others) > 6 else "")
        notes.append(
            f"{len(others)} earlier attempts, or runs of an earlier version of the job, "
            f"are left out: {shown}"
        )
    return ExpectedStudy(
        name=manifest.spec.name,
        runs=tuple(expected),
        baseline=manifest.baseline,
        scaling=manifest.spec.scaling,
        batch=manifest.spec.global_batch_size,
        warmup=manifest.spec.warmup,
        gates=manifest.spec.gates,
        refused=manifest.refused,
        notes=tuple(notes),
    )


def _of_job(run: Run | None) -> dict[str, Any]:
    """Return start, requeues, duration and time lost from the files of the job, and its nodes."""
    status, nodes = run.status if run else None, {"node_list": ",".join(nodes_of(run))}
    if status is None:
        return nodes
    starts = run.starts if run else ()
    lifecycle = run is not None and run.manifest is not None and run.manifest.plan.lifecycle
    return {
        **nodes,
        "started": starts[0].started if starts else status.started,
        "restarts": status.restart_count,
        "wall_s": run_time_s(starts, status),
        "lost_to_restarts_s": time_lost_s(starts, status) if lifecycle else None,
    }


def single_jobs(home: Path, runs: Sequence[Run], problem_of: Callable[[Run], str]) -> ExpectedStudy:
    """List the runs of a single job.

    Raises:
        StoreError: there are none.
    """
    if not runs:
        raise StoreError(f"{home}: no runs in this folder")
    counts: Counter[str] = Counter()
    expected = []
    for run in runs:
        plan = run.manifest.plan if run.manifest else None
        key = repr(plan.topology) if plan else "unknown"
        counts[key] += 1
        expected.append(
            ExpectedRun(
                run_id=run.folder.run_id,
                axes={},
                repetition=counts[key],
                topology=plan.topology if plan else None,
                state=run.state.value,
                problem=problem_of(run),
                **_of_job(run),
            )
        )
    return ExpectedStudy(name=home.name, runs=tuple(expected))


def without_copies(runs: Sequence[Run]) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """Return the runs with one folder for each job, and a note on each other folder of the job.

    The folder with the name of the run is kept, else the first one. A run that was copied and then
    submitted again is another job. A run that was never submitted has no result and is not checked.
    """
    kept: dict[tuple[str, ...], Run] = {}
    for run in sorted(runs, key=lambda run: _run_id(run) != run.folder.run_id):
        if job := _job(run):
            kept.setdefault(job, run)
    first = {run.folder: kept.get(_job(run), run) for run in runs}
    notes = tuple(
        f"{run.folder.path.name} is left out: a copy of the folder "
        f"{first[run.folder].folder.path.name} (run {_run_id(run)}, job "
        f"{run.submission.native_id}); one job, not two repetitions"
        for run in runs
        if first[run.folder] is not run and run.submission
    )
    return tuple(run for run in runs if first[run.folder] is run), notes


def _run_id(run: Run) -> str:
    return run.manifest.run_id if run.manifest else ""


def _job(run: Run) -> tuple[str, ...]:
    """Return what identifies a submission; empty without an answer of the scheduler."""
    manifest, sent = run.manifest, run.submission
    if manifest is None or sent is None or not sent.answered:
        return ()
    return (manifest.run_id, manifest.created, sent.executor, sent.native_id, sent.submitted)


def run_blocks(runs: Iterable[tuple[Run, int]]) -> dict[str, str]:
    """Return run id -> block, from runs with their repetitions.

    The runs of one repetition are a block if they ran in one allocation without a run of another
    repetition between them: they share the nodes and the time. An allocation in which repetitions
    overlap, or in which the start of a run is not known, has no blocks.
    """
    allocations: dict[str, list[tuple[float, int, str]]] = {}
    unknown: set[str] = set()
    for run, repetition in runs:
        submission = run.submission
        if submission is None or not submission.shared or not submission.answered:
            continue
        if run.status is None:
            unknown.add(submission.native_id)
            continue
        own = allocations.setdefault(submission.native_id, [])
        own.append((run.status.started, repetition, run.folder.run_id))
    blocks: dict[str, str] = {}
    for job, own in allocations.items():
        # Runs of one repetition are neighbours.
        turns = [number for number, _ in groupby(repetition for _, repetition, _ in sorted(own))]
        if job not in unknown and len(turns) == len(set(turns)):
            blocks |= {run_id: f"{job}/{repetition}" for _, repetition, run_id in own}
    return blocks


def run_time_s(starts: Sequence[JobStart], status: JobStatus) -> float | None:
    """Return the seconds that all starts ran together; None while the last one runs.

    A start whose end is not known, because its node was lost, counts until its last checkpoint.
    """
    if status.ended is None:
        return None
    earlier = 0.0
    for start in starts:
        last = start.ended if start.ended is not None else start.saved
        if start.restart < status.restart_count and last is not None:
            earlier += max(0.0, last - start.started)
    return earlier + max(0.0, status.ended - status.started)


def time_lost_s(starts: Sequence[JobStart], status: JobStatus) -> float | None:
    """Return the seconds from each last checkpoint until the next start has resumed, together.

    They are the work that is repeated, the wait in the queue, and the start of the ranks; 0 without
    a restart. A start that saved nothing is lost from its resume on. None if a start left no line
    or the time of its checkpoint is not known. The time of a resume is that of
    `hpc_train.trainer.checkpoint`; without it, the start begins with the script.
    """
    if [start.restart for start in starts[: status.restart_count]] != [
        *range(status.restart_count)
    ]:
        return None
    spans = list(_spans(starts, status))
    if any(kept is None for _, kept in spans[:-1]):
        return None
    return sum(max(0.0, begun - (kept or 0.0)) for (_, kept), (begun, _) in pairwise(spans))


def _spans(starts: Sequence[JobStart], status: JobStatus) -> Iterator[tuple[float, float | None]]:
    """Yield the part of each start that later starts keep: resume, and last checkpoint [s]."""
    for start in starts:
        # An earlier start may have written the file.
        times = (start.resumed, start.saved)
        resumed, saved = (t if t is not None and t >= start.started else None for t in times)
        begun = start.started if resumed is None else resumed
        known = start.saved is not None or start.step == 0
        yield begun, (begun if saved is None else saved) if known else None
    if not starts or starts[-1].restart < status.restart_count:
        yield status.started, None
