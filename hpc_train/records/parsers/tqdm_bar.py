"""Progress bars of tqdm of an unknown loop: `Map:  50%|#####| 5/10 [00:02<00:02, 2.00it/s]`.

The bars of evaluation, data preparation, downloads and custom training loops have the same form. So
the time of an iteration [s] is `iteration_time`, its scope is unknown, and reports omit it. It is
tqdm's smoothed mean of the last iterations. `variant` is the text before the bar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.progress_bar import bar_of

_LONGEST = 40


class TqdmBar:
    """Parser of the bars that no other parser takes; remembers the last one."""

    title = "tqdm's progress bar, of an unknown loop"
    literals = (b"it/s", b"s/it")
    sample = "Evaluating:  25%|##5       | 25/100 [00:10<00:30,  2.50it/s]"
    states: Mapping[str, Scope] = {"iteration_time": "unknown"}
    wants_next = False

    def __init__(self) -> None:
        self._last: tuple[int | None, str, int] | None = None

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the time of an iteration if the bar has advanced."""
        text = line.text
        bar = bar_of(text)
        if bar is None or not bar.done or bar.step_time is None:
            return
        name = " ".join(text[bar.free : bar.start].split()).rstrip(" :-")[-_LONGEST:]
        state = (line.rank, name, bar.done)
        if state != self._last:
            yield Hit("iteration_time", bar.step_time, "unknown", bar.done, variant=name)
        self._last = state
