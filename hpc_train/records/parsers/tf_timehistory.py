"""TimeHistory of TensorFlow's official models, and its old form `BenchmarkMetric: {..}`.

Rates [1/s] are global, and the mean over an interval of steps. The number of GPUs is that of a
worker (`'num_gpus': 8`) times the number of workers (`'worker_hosts': None` is one worker). Both
are read from the final parameters; the parameters printed before are defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, number

_INTERVAL = re.compile(
    rf"TimeHistory: (?P<seconds>{NUMBER}) seconds, (?P<rate>{NUMBER}) examples/second "
    r"between steps (?P<first>\d{1,12}) and (?P<last>\d{1,12})(?!\d)"
)
_OLD = re.compile(
    r"BenchmarkMetric: \{[^{}]{0,200}?'(?:global step|num_batches)': ?(?P<last>\d{1,12}), "
    rf"'time_taken': ?{NUMBER}, ?'(?:examples|images)_per_second': ?(?P<rate>{NUMBER})"
)
_FINAL = re.compile(r"Final \w{1,20} parameters: \{")
_GPUS = re.compile(r"'num_gpus': (\d{1,9})\b")
_WORKERS = re.compile(r"'worker_hosts': (?:None|'([^']{0,20000})')")


class TfTimeHistory:
    """Parser of the lines of the Keras callback TimeHistory."""

    title = "TensorFlow model garden (TimeHistory)"
    literals = (
        *(b"TimeHistory: ", b"BenchmarkMetric: "),
        *(b" parameters: {'", b"'num_gpus': ", b"'worker_hosts': "),
    )
    sample = "TimeHistory: 40.00 seconds, 320.00 examples/second between steps 100 and 200"
    states: Mapping[str, Scope] = {"step_time": "global", "samples_per_second": "global"}
    wants_next = False

    def __init__(self) -> None:
        self._is_final = False
        self._gpus = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the time of a step and the rate of an interval."""
        text = line.text
        interval = _INTERVAL.search(text)
        if interval:
            yield from _interval(interval)
            return
        old = _OLD.search(text)
        rate = number(old["rate"]) if old else None
        if old and rate is not None:
            yield Hit("samples_per_second", rate, "global", int(old["last"]))
        elif "TimeHistory: " in text and " seconds, " in text:
            yield Unreadable()
        else:
            yield from self._size(text)

    def _size(self, text: str) -> Iterator[Hit]:
        """Yield the number of GPUs after the last of the final parameters that determine it."""
        if " parameters: {" in text:
            self._is_final, self._gpus = _FINAL.search(text) is not None, 0
        gpus, workers = _GPUS.search(text), _WORKERS.search(text)
        if gpus and self._is_final:
            self._gpus = int(gpus[1])
        if workers and self._gpus:
            size = self._gpus * len((workers[1] or "one").split(","))
            self._gpus = 0
            yield Hit("world_size", float(size), "global", once="world_size")


def _interval(match: re.Match[str]) -> Iterator[Hit]:
    seconds, rate = number(match["seconds"]), number(match["rate"])
    last = int(match["last"])
    steps = last - int(match["first"])
    if steps <= 0:
        return
    if seconds is not None:
        yield Hit("step_time", seconds / steps, "global", last, steps=steps)
    if rate is not None:
        yield Hit("samples_per_second", rate, "global", last, steps=steps)
