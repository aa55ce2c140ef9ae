"""TimeHistory of TensorFlow's official models: `TimeHistory: 39.13 seconds, 327.08 examples/second`.

Rates [1/s] are of the global batch over an interval of steps. The old form is `BenchmarkMetric:
{..}`; at the end `avg_exp_per_second` is the mean over the run.
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
_MEAN = re.compile(rf"'avg_exp_per_second': (?:np\.float64\()?(?P<rate>{NUMBER})")


class TfTimeHistory:
    """Parser of the lines of the Keras callback TimeHistory."""

    title = "TensorFlow model garden (TimeHistory)"
    literals = (b"TimeHistory: ", b"BenchmarkMetric: ", b"'avg_exp_per_second': ")
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
        old, mean = _OLD.search(text), _MEAN.search(text)
        rate = number((old or mean or {"rate": ""})["rate"])
        if rate is not None:
            step, once = (int(old["last"]), "") if old else (None, "mean")
            yield Hit("samples_per_second", rate, "global", step, once=once)
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
