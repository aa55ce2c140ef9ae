"""The nodes of a run: their names, those on which runs failed, and slow ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

import msgspec

from hpc_train.base.files import files_in, open_regular
from hpc_train.base.node_names import host_name, node_names
from hpc_train.base.values import Value
from hpc_train.jobs.job import RESUBMIT
from hpc_train.runs.run import Run


def recorded_nodes(run: Run) -> str:
    """Return the node list that the job or the scheduler recorded, or the host of the job."""
    status, report = run.status, run.job_report
    names = (status.nodes if status else "") or (report.nodes if report else "")
    return names or (status.host if status else "")


def nodes_of(run: Run | None) -> tuple[str, ...]:
    """Return the names of the nodes of a run, sorted.

    Empty if they are not known: no list was recorded, or one of another number of nodes, as for a
    run on a part of its allocation.
    """
    manifest = run.manifest if run else None
    if run is None or manifest is None:
        return ()
    names = node_names(recorded_nodes(run))
    return tuple(sorted(names)) if len(names) == manifest.plan.topology.nodes else ()


# A node is repaired or replaced; what failed on it before says nothing then.
_REMEMBERED_S = 7 * 86400.0
# A program fails on any node: one failure is no evidence against its node.
_OFTEN = 2


class NodeFault(Value, frozen=True, kw_only=True):
    """A failure of a run that began on a node, at a time in seconds since the epoch."""

    node: str
    run_id: str
    time: float
    text: str
    preflight: bool = False


def node_faults(runs: Sequence[Run], now: float) -> dict[str, tuple[NodeFault, ...]]:
    """Return the faults of the last seven days, by node, the latest first.

    The nodes with most of them are first.
    """
    by_node: dict[str, list[NodeFault]] = defaultdict(list)
    for run in runs:
        for fault in _faults(run):
            if now - fault.time < _REMEMBERED_S:
                by_node[fault.node].append(fault)
    order = sorted(by_node, key=lambda node: (-len(by_node[node]), node))
    return {node: tuple(sorted(by_node[node], key=lambda fault: -fault.time)) for node in order}


def bad_nodes(faults: Mapping[str, Sequence[NodeFault]]) -> tuple[str, ...]:
    """Return the nodes that failed a preflight, or on which two starts failed first."""
    return tuple(
        sorted(
            node
            for node, several in faults.items()
            if any(fault.preflight for fault in several) or len(several) >= _OFTEN
        )
    )


def _faults(run: Run) -> Iterator[NodeFault]:
    """Yield the faults of a run: of the starts that were followed by another, and of its end."""
    for start in run.starts:
        if start.requeued and start.failed:
            yield NodeFault(
                node=start.failed,
                run_id=run.folder.run_id,
                time=start.ended or start.started,
                text=f"a rank failed first in start {start.restart}, exit code {start.exit_code}",
            )
    status = run.status
    if status is None or status.exit_code == 0 or not run.state.finished:
        return
    when = status.ended or status.started
    failed = [name for name in status.bad_nodes.split(",") if name]
    for name in failed:
        yield NodeFault(
            node=name, run_id=run.folder.run_id, time=when, text="preflight failed", preflight=True
        )
    failure = status.failure
    if failure is not None and failure.exit_code != RESUBMIT and not (failed or failure.lost_peer):
        rank = "a rank" if failure.rank is None else f"rank {failure.rank}"
        yield NodeFault(
            node=failure.host.partition(".")[0],
            run_id=run.folder.run_id,
            time=failure.time or when,
            text=f"{rank} failed first, exit code {failure.exit_code}",
        )


# About 40 events of each rank, the last 10 of which count.
_TAIL, _STEPS = 1 << 13, 10
# Ratio to the median of the other ranks from which a rank is named. Below are unequal batches.
SLOW = 1.5
# Logs of ranks that a question for the state of a run opens.
_MOST = 10_000
# Fewer steps may be those of the start.
_FEWEST = 5
_EVENT, _RESTART = b"@hpct ", b"hpctrain: restart "


class TimedStep(msgspec.Struct, frozen=True, gc=False):
    """What is read of an event; other keys are ignored."""

    event: str
    rank: int | None = None
    step_time: float | None = None
    compute_time: float | None = None
    node: str = ""


_decode = msgspec.json.Decoder(TimedStep).decode


class SlowRank(Value, frozen=True, kw_only=True):
    """A rank, its node if known, and its time for a step: seconds, and times that of the others."""

    rank: int
    node: str
    seconds: float
    times: float

    def text(self) -> str:
        """Return `rank 1 on n2 takes 0.31 s, 3.1 times the median of the other ranks`."""
        place = f" on {self.node}" if self.node else ""
        return (
            f"rank {self.rank}{place} takes {self.seconds:.3g} s a step, {self.times:.2g} times "
            "the median of the other ranks"
        )


def slow_ranks(logs: Path) -> tuple[SlowRank, ...]:
    """Return the slow ranks of the last start, the slowest first; none of a single rank.

    The time of a step is `compute_time` of its event where all ranks print it: in a training whose
    ranks wait for one another, `step_time` is the same for all of them. It is the median of the
    last steps.
    """
    steps = _last_steps(logs)
    alone = all(step.compute_time is not None for several in steps.values() for step in several)
    times = {
        rank: median((step.compute_time if alone else step.step_time) or 0.0 for step in several)
        for rank, several in steps.items()
    }
    slow = []
    for rank, seconds in times.items():
        others = [other for number, other in times.items() if number != rank]
        if others and (usual := median(others)) > 0 and seconds >= SLOW * usual:
            node = host_name(steps[rank][-1].node)
            slow.append(SlowRank(rank=rank, node=node, seconds=seconds, times=seconds / usual))
    return tuple(sorted(slow, key=lambda one: -one.times))


def _last_steps(logs: Path) -> dict[int, list[TimedStep]]:
    found: dict[int, list[TimedStep]] = defaultdict(list)
    several = [*files_in(logs, "rank-*.out"), *files_in(logs, "node-*.out")]
    for log in several if len(several) <= _MOST else ():
        number = log.stem.partition("-")[2]
        own = int(number) if number.isdecimal() else 0
        for step in _last_of_log(log):
            found[own if step.rank is None else step.rank].append(step)
    return {rank: steps[-_STEPS:] for rank, steps in found.items() if len(steps) >= _FEWEST}


def _last_of_log(log: Path) -> Iterator[TimedStep]:
    with open_regular(log) as file:
        file.seek(max(0, log.stat().st_size - _TAIL))
        lines = file.read().rpartition(_RESTART)[2].splitlines()
    for line in lines:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            step = _decode(line.partition(_EVENT)[2])
            if step.event == "step" and step.step_time is not None:
                yield step
