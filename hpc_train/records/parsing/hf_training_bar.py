"""Selection of the progress bar of the Trainer's training.

Evaluations, datasets and downloads draw bars of the same form. The bar of the training is
identified by the number of steps that the Trainer prints, in its banner
(`Total optimization steps = 32`) or in a dictionary (`'global_step/max_steps': '12/60'`); by a
dictionary with the loss, which is printed while the bar is active; or by the rate of the whole
training. Bars before that are ignored, and also bars with another total or a clock that decreases.

A dictionary belongs to the current step of the bar, unless the output was buffered: then it is
printed late, and its epoch does not increase with the bar.
"""

from __future__ import annotations

from hpc_train.records.parsing.printed_numbers import number
from hpc_train.records.parsing.progress_bar import Bar

# tqdm draws at most ten times per second: with faster steps, the bar does not show the last one.
_SLOW_S = 0.2
_RATE_ROUNDING = 0.0005
# An epoch that increased by fewer units of its last digit is not used.
_LEAST_DIGITS = 10


class HfBar:
    """Remembers the last bar, and the progress of the training."""

    def __init__(self) -> None:
        self.total = 0
        # The last step in the training's bar; None if steps are too fast.
        self.step: int | None = None
        self._is_stated = False
        self._last: Bar | None = None
        self._done = 0
        self._elapsed = 0
        self._is_aside = False
        self._logged: tuple[float, int] | None = None
        self._decimals = 0

    def train(self) -> None:
        """Note the head of a training's banner."""
        self._begin(0, None)

    def plan(self, total: int) -> None:
        """Note the number of steps that the banner or a dictionary states."""
        if total != self.total:
            last = self._last
            self._begin(total, last if last is not None and last.total == total else None)
        self._is_stated = True

    def evaluate(self) -> None:
        """Note the head of an evaluation's banner: the next bar is its own."""
        self._is_aside = True

    def evaluated(self) -> None:
        """Note a dictionary of an evaluation: the last bar was its own."""
        self._last, self._is_aside = None, False

    def logged(self) -> None:
        """Note a dictionary with a loss: the bar under way is that of the training."""
        last = self._last
        is_new = last is not None and last.total != self.total
        if last is None or (is_new and (self._is_stated or not 0 < last.done < last.total)):
            return
        self._begin(last.total, last)

    def step_at(self, epoch: str) -> int | None:
        """Return the step of a dictionary with this epoch; None if it was printed late."""
        place, before = number(epoch), self._logged
        if self.step is None or place is None:
            return self.step
        self._logged = (place, self.step)
        self._decimals = max(self._decimals, len(epoch.partition(".")[2]))
        if before is None or place <= before[0]:
            return self.step
        rise, moved = place - before[0], self.step - before[1]
        digit = 10.0**-self._decimals
        if moved and rise < _LEAST_DIGITS * digit:
            return self.step
        expected = place * moved / rise
        is_late = not moved or abs(expected - self.step) > max(1.0, expected * digit / rise)
        return None if is_late else self.step

    def finished(self, runtime: float, rate: float) -> None:
        """Note the end: how long [s] the training took, and its steps per second."""
        last = self._last
        if not self.total and last is not None and last.done == last.total:
            if abs(runtime * rate - last.total) <= 1 + runtime * _RATE_ROUNDING:
                self.total = last.total

    def advance(self, bar: Bar) -> int:
        """Return the number of steps that the training's bar advanced; 0 for any other bar."""
        # Ranks draw the same bar, a little apart.
        least = self._elapsed if self._is_aside else self._elapsed // 2
        is_other = bar.total == self.total and bar.elapsed < least
        self._is_aside = is_other or (self._is_aside and bar.total != self.total)
        self._last = bar
        if is_other or bar.total != self.total or not bar.done:
            return 0
        since, self._done = bar.done - self._done, max(self._done, bar.done)
        self._elapsed, self.step = max(self._elapsed, bar.elapsed), _step(bar)
        return max(1, since)

    def _begin(self, total: int, last: Bar | None) -> None:
        is_other = total != self.total
        self._is_stated = self._is_stated and not is_other
        self.total, self._last, self._is_aside = total, last, False
        self._done, self._elapsed = (last.done, last.elapsed) if last else (0, 0)
        self.step = _step(last) if last else None
        if is_other:
            self._logged = None


def _step(bar: Bar) -> int | None:
    return bar.done if (bar.step_time or 0) > _SLOW_S else None
