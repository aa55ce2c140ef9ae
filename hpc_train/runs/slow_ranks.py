"""The ends of the logs of a run -> the ranks that compute much longer than the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median

import msgspec

from hpc_train.base.files import files_in, open_regular
from hpc_train.base.node_names import host_name
from hpc_train.base.value import Value

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
