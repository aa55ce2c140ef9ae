"""Logs of other frameworks than PyTorch: TensorFlow's TimeHistory, MXNet's Speedometer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from hpc_train.logs.formats.base import OF_LINE, Coded, Hit, RunningStep, Unreadable
from hpc_train.logs.formats.number import NUMBER, number
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

# TimeHistory of TensorFlow's official models.

_INTERVAL = re.compile(
    rf"TimeHistory: (?P<seconds>{NUMBER}) seconds, (?P<rate>{NUMBER}) examples/second "
    r"between steps (?P<first>\d{1,12}) and (?P<last>\d{1,12})(?!\d)"
)
_FINAL = re.compile(r"Final \w{1,20} parameters: \{")
_GPUS = re.compile(r"'num_gpus': (\d{1,9})\b")
_WORKERS = re.compile(r"'worker_hosts': (?:None|'([^']{0,20000})')")


class TfTimeHistory(Coded):
    """Parser of the lines of the Keras callback TimeHistory."""

    def __init__(self) -> None:
        self._is_final = False
        self._gpus = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the time of a step and the rate of an interval."""
        text = line.text
        if interval := _INTERVAL.search(text):
            last, steps = int(interval["last"]), int(interval["last"]) - int(interval["first"])
            seconds, rate = number(interval["seconds"]), number(interval["rate"])
            if steps > 0 and seconds is not None and rate is not None:
                yield Hit("step_time", seconds / steps, "global", last, steps=steps)
                yield Hit("samples_per_second", rate, "global", last, steps=steps)
        elif "TimeHistory: " in text and " seconds, " in text:
            yield Unreadable()
        else:
            yield from self._world_size(text)

    def _world_size(self, text: str) -> Iterator[Hit]:
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


# MXNet's Speedometer: `Node[0] Epoch[0] Batch [20-40]\tSpeed: 1234.5 samples/sec\taccuracy=0.1`.

_LINE = re.compile(
    rf"(?:Node\[(?P<node>\d{{1,7}})\] +(?:[\d:,. -]{{0,30}}INFO:root:)?)?"
    rf"Epoch\[(?P<epoch>\d{{1,9}})\] "
    rf"(?:Batch ?\[(?:(?P<first>\d{{1,9}})-)?(?P<batch>\d{{1,9}})\][\t ]{{1,8}}"
    rf"Speed: (?P<rate>{NUMBER}) samples/sec"
    rf"|Time cost=(?P<epoch_time>{NUMBER})"
    rf"|Validation-(?:accuracy|acc-top1|top_k_accuracy_1)=(?P<accuracy>{NUMBER}))"
)


class MxnetSpeedometer(Coded):
    """Parser of the lines of MXNet's training callbacks."""

    def __init__(self) -> None:
        self._steps: defaultdict[int | None, RunningStep] = defaultdict(RunningStep)
        self._each_for_itself = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the value that one callback printed."""
        self._each_for_itself |= "kv_store='dist" in line.text
        match = _LINE.search(line.text)
        if match is None:
            return
        node = int(match["node"]) if match["node"] else None
        self._each_for_itself |= bool(node)
        scope: Scope = "per_rank" if node is None or self._each_for_itself else "global"
        rank = OF_LINE if node is None else node
        if match["batch"]:
            place = self._steps[node].at(match["epoch"], int(match["batch"]))
            metric, step, steps = "samples_per_second", place.step, place.since
            steps = max(1, int(match["batch"]) - int(match["first"])) if match["first"] else steps
        else:
            metric = "epoch_time" if match["epoch_time"] else "accuracy"
            step, steps = int(match["epoch"]) + 1, 1
            scope = "per_rank" if metric == "accuracy" else scope
        value = number(match["rate"] or match["epoch_time"] or match["accuracy"])
        if value is not None:
            yield Hit(metric, value, scope, step, rank, steps=steps)
