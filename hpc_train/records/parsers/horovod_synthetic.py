"""Horovod's synthetic benchmarks of PyTorch and TensorFlow, and benchmarks with the same output.

`Iter #0: 123.4 img/sec per GPU` and `Img/sec per GPU: 123.4 +-1.2` are per GPU,
`Total img/sec on 8 GPU(s): 987.2 +-9.6` is of all GPUs; all in 1/s. The number after `+-` is 1.96
standard deviations over the iterations (variant `ci`). An iteration is several batches.
TensorFlow's `tf_cnn_benchmarks` prints `10 images/sec: 123.4 +/- 0.5 (jitter = 0.6)`, the mean of
one worker since the start, and `total images/sec: 987.20`, the rate of all workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import Hit, Unreadable
from hpc_train.records.parsing.printed_numbers import NUMBER, number

_WHAT = r"(?:im(?:a)?ges?|img|samples|sequences|sentences|examples|seqs?)/sec(?:ond)?"
_CI = r"(?: ?(?:\+-|\+/-|±) ?"
_LINE = re.compile(
    rf"(?:Iter #(?P<iteration>\d{{1,9}}): (?P<one>{NUMBER}) {_WHAT} per [A-Za-z]{{2,12}}"
    rf"|{_WHAT} per [A-Za-z]{{2,12}}: (?P<each>{NUMBER})"
    rf"{_CI}(?P<each_ci>{NUMBER}))?"
    rf"|Total {_WHAT} on (?P<size>\d{{1,7}}) [A-Za-z]{{2,12}}\(?s?\)?: (?P<total>{NUMBER})"
    rf"{_CI}(?P<total_ci>{NUMBER}))?)",
    re.IGNORECASE,
)
_TF_STEP = re.compile(rf"^\s*(?P<step>\d{{1,9}})\s+images/sec: (?P<rate>{NUMBER}) \+/- ")
_TF_TOTAL = re.compile(r"^\s*total images/sec: (?P<total>\d{1,12}\.\d\d)$")


class HorovodSynthetic:
    """Parser of the lines of Horovod's synthetic benchmarks."""

    title = "Horovod synthetic benchmarks, tf_cnn_benchmarks"
    literals = (b"Iter #", b"/sec per ", b"/sec on ", b"images/sec: ")
    sample = (
        "Iter #0: 123.4 img/sec per GPU\nImg/sec per GPU: 123.4 +-1.2\n"
        "Total img/sec on 8 GPU(s): 987.2 +-9.6"
    )
    states: Mapping[str, Scope] = {"samples_per_second": "global", "world_size": "global"}
    wants_next = False

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the rates of a line; the interval's half width comes before its rate."""
        match = _LINE.search(line.text)
        if match is None:
            yield from _tf(line.text)
            if line.text.startswith("Iter #"):
                yield Unreadable()
            return
        step = int(match["iteration"]) + 1 if match["iteration"] else None
        rates: tuple[tuple[str, Scope, str], ...] = (
            ("one", "per_gpu", ""),
            ("each_ci", "per_gpu", "ci"),
            ("each", "per_gpu", ""),
            ("total_ci", "global", "ci"),
            ("total", "global", ""),
        )
        if match["size"]:
            yield Hit("world_size", float(match["size"]), "global", once="world_size")
        for group, scope, variant in rates:
            value = None if match[group] is None else number(match[group])
            if value is not None:
                yield Hit("samples_per_second", value, scope, step, variant=variant)


def _tf(text: str) -> Iterator[Hit]:
    step, total = _TF_STEP.search(text), _TF_TOTAL.search(text)
    rate = number(step["rate"] if step else total["total"] if total else "")
    if rate is None:
        return
    if step:
        place = int(step["step"])
        yield Hit("samples_per_second", rate, "per_rank", place, steps=max(1, place))
    else:
        yield Hit("samples_per_second", rate, "global", once="total")
