"""Lightning's progress bars, of tqdm and of Rich: `Epoch 0:  23%|..| 23/100 [.., 2.16it/s, ..]`.

Iterations are batches of the printing rank: their time [s] and the loss are per rank. The time is
the mean between two states of the bar (see `bar_iteration_times`), because the rate that the bar
shows is the mean since the start of the epoch. The step counts batches over all epochs. Programs
other than Lightning that name their bar `Epoch 1/10` count epochs from 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number
from hpc_train.records.parsing.progress_bar import Bar, BarClock, bar_of

_EPOCH = re.compile(r"[Ee]poch:? ?(\d{1,9})(?:/(-?\d{1,9}))?(:)?[: ]*$")
_LOSS = re.compile(
    r"(?:^|[ ,])(?:train(?:ing)?[_/])?(?:step_)?loss(?:_step)?(?:=|: )([-+.\w]{1,32})"
)
_METRICS = {
    "grad_norm": re.compile(r"(?:^|[ ,])grad_norm(?:=|: )([-+.\w]{1,32})"),
    "learning_rate": re.compile(r"(?:^|[ ,])(?:lr|learning_rate)(?:=|: )([-+.\w]{1,32})"),
}


class LightningBar:
    """Parser of the bars; remembers the state of the last bar."""

    title = "PyTorch Lightning's progress bar"
    literals = (b"it/s", b"s/it")
    sample = "Epoch 1:  25%|##5       | 25/100 [00:50<02:30,  0.50it/s, v_num=0, train_loss=0.512]"
    states: Mapping[str, Scope] = {"step_time": "per_rank", "loss": "per_rank"}
    wants_next = False

    def __init__(self) -> None:
        self._clock = BarClock()
        self._seen: dict[str, str] = {}

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the times of iterations, and each value where it changes.

        A bar is drawn again after its values were set: the first drawing shows the previous values.
        """
        text = line.text
        bar = bar_of(text)
        epoch = None if bar is None else _EPOCH.search(text, max(0, bar.start - 40), bar.start)
        if bar is None or epoch is None:
            if bar is not None:
                self._clock.interrupt(line.rank)
            return
        over = _first(epoch)
        step = over * bar.total + bar.done if bar.total or not over else None
        found = self._clock.interval(line.rank, over, bar)
        if found is not None:
            yield Hit("step_time", found.step_time, "per_rank", step, steps=found.steps)
        if not bar.done:
            return
        yield from self._values(bar, step)

    def _values(self, bar: Bar, step: int | None) -> Iterator[Hit]:
        for metric, pattern in (("loss", _LOSS), *_METRICS.items()):
            found = pattern.search(bar.fields)
            if found is None or self._seen.get(metric) == found[1]:
                continue
            self._seen[metric] = found[1]
            value = number(found[1])
            if value is not None:
                yield Hit(metric, value, "per_rank", step)


def _first(epoch: re.Match[str]) -> int:
    """Return the number of completed epochs; Rich's `Epoch 0/9` has no colon and counts from 0."""
    is_counted_from_1 = epoch[2] is not None and epoch[3] is not None
    return max(0, int(epoch[1]) - is_counted_from_1)
