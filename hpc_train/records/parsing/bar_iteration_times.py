"""States of a progress bar -> the mean time of the iterations between two of them.

The clock of a bar shows whole seconds, so the error of a difference is below 1 s. Iterations are
combined until this error is at most 5 %: 87 iterations in 61 s are one value of 0.70 s, the mean of
87. The remainder at the end of an epoch gives no value. The rate of the bar is not used: it is the
mean since the start of the epoch (Lightning), or smoothed (tqdm's default, Rich).
"""

from __future__ import annotations

from typing import NamedTuple

from hpc_train.records.parsing.progress_bar import Bar

_LEAST_S = 20
_RESOLUTION_S = 1
# Tolerance between a printed rate and the elapsed time, in addition to the clock's resolution.
_ROUNDING = 0.01


class MeanInterval(NamedTuple):
    """The mean time [s] of a number of iterations."""

    step_time: float
    steps: int


class _State(NamedTuple):
    """A state of the bar of a loop; `is_whole`: the state in which the bar began."""

    loop: object
    done: int
    elapsed: int
    is_whole: bool = False
    is_interrupted: bool = False


class BarClock:
    """Remembers, for each rank, the state from which the next interval is measured."""

    def __init__(self) -> None:
        self._from: dict[int | None, _State] = {}

    def interval(self, rank: int | None, loop: object, bar: Bar) -> MeanInterval | None:
        """Return the interval that ends with this state of a loop's bar, if it is long enough."""
        start = self._from.get(rank)
        if start is None or start.loop != loop or bar.elapsed + _RESOLUTION_S < start.elapsed:
            start = self._from[rank] = _beginning(loop, bar)
        elif start.is_interrupted:
            start = self._from[rank] = _State(loop, bar.done, bar.elapsed)
        steps, took = bar.done - start.done, bar.elapsed - start.elapsed
        if steps <= 0:
            return None
        if took >= _LEAST_S:
            self._from[rank] = _State(loop, bar.done, bar.elapsed)
            return MeanInterval(took / steps, steps)
        if start.is_whole and bar.done == bar.total and "v_num=" in bar.fields and _agrees(bar):
            # Lightning's rate of a whole epoch is its mean, with more digits than the clock.
            self._from[rank] = start._replace(done=bar.done, is_whole=False)
            return MeanInterval(bar.step_time or 0.0, steps)
        return None

    def interrupt(self, rank: int | None) -> None:
        """Note that other code ran: the clock includes time outside the loop."""
        if rank in self._from:
            self._from[rank] = self._from[rank]._replace(is_interrupted=True)


def _beginning(loop: object, bar: Bar) -> _State:
    """Return the first state of a loop's bar: 0, unless it was resumed or other code ran before."""
    if not bar.done or _agrees(bar):
        return _State(loop, 0, 0, is_whole=True)
    return _State(loop, bar.done, bar.elapsed)


def _agrees(bar: Bar) -> bool:
    """Whether the printed rate is that of all iterations since 0."""
    if bar.step_time is None:
        return False
    mean = bar.elapsed / bar.done
    return abs(bar.step_time - mean) <= _RESOLUTION_S / bar.done + _ROUNDING * bar.step_time
