"""TimeHistory of TensorFlow's official models, and its old form `BenchmarkMetric: {..}`.

Rates [1/s] are of the global batch, the mean over an interval of steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsers.base import Hit, Unreadable
from hpc_train.records.parsers.number import NUMBER, number

_INTERVAL = re.compile(
    rf"TimeHistory: (?P<seconds>{NUMBER}) seconds, (?P<rate>{NUMBER}) examples/second "
    r"between steps (?P<first>\d{1,12}) and (?P<last>\d{1,12})(?!\d)"
)
_OLD = re.compile(
    r"BenchmarkMetric: \{[^{}]{0,200}?'(?:global step|num_batches)': ?(?P<last>\d{1,12}), "
    rf"'time_taken': ?{NUMBER}, ?'(?:examples|images)_per_second': ?(?P<rate>{NUMBER})"
)


class TfTimeHistory:
    """Parser of the lines of the Keras callback TimeHistory."""

    title = "TensorFlow model garden (TimeHistory)"
    literals = (b"TimeHistory: ", b"BenchmarkMetric: ")
    sample = "TimeHistory: 40.00 seconds, 320.00 examples/second between steps 100 and 200"
    states: Mapping[str, Scope] = {"step_time": "global", "samples_per_second": "global"}
    wants_next = False

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
