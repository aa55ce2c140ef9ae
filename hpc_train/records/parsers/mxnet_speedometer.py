"""MXNet's Speedometer: `Node[0] Epoch[0] Batch [20-40]\\tSpeed: 1234.5 samples/sec\\taccuracy=0.1`.

The rate [1/s] is that of the whole job where one node prints for all (Horovod, MLPerf); with
`kv_store='dist..`, with several nodes or without `Node[..]` it is that of one worker. `Time cost`
[s] of an epoch likewise. `Validation-accuracy` is a fraction.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsers.base import OF_LINE, Hit
from hpc_train.records.parsers.number import NUMBER, number
from hpc_train.records.parsers.running_step import RunningStep

_LINE = re.compile(
    rf"(?:Node\[(?P<node>\d{{1,7}})\] +)?(?:Epoch|Iter)\[(?P<epoch>\d{{1,9}})\] "
    rf"(?:Batch ?\[(?:\d{{1,9}}-)?(?P<batch>\d{{1,9}})\][\t ]Speed: (?P<rate>{NUMBER}) samples/sec"
    rf"(?P<rest>.{{0,1000}})"
    rf"|Time cost=(?P<epoch_time>{NUMBER})"
    rf"|Validation-(?:accuracy|acc-top1|top_k_accuracy_1)=(?P<accuracy>{NUMBER}))"
)
_LOSS = re.compile(rf"\b(?:Train-)?(?:cross-entropy|loss)=(?P<loss>{NUMBER})")


class MxnetSpeedometer:
    """Parser of the lines of MXNet's training callbacks."""

    title = "MXNet Speedometer"
    literals = (
        *(b"]\tSpeed: ", b"] Speed: ", b"] Time cost=", b"] Validation-"),
        b"kv_store='dist",
    )
    sample = (
        "Node[0] Epoch[0] Batch [20-40]\tSpeed: 1234.56 samples/sec\tcross-entropy=6.91\n"
        "Node[0] Epoch[0] Time cost=101.5\nNode[0] Epoch[0] Validation-accuracy=0.12"
    )
    states: Mapping[str, Scope] = {
        "samples_per_second": "global",
        "loss": "per_rank",
        "epoch_time": "global",
        "accuracy": "global",
    }
    wants_next = False

    def __init__(self) -> None:
        self._steps: defaultdict[int | None, RunningStep] = defaultdict(RunningStep)
        self._each_for_itself = False

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield what one callback printed."""
        text = line.text
        if "kv_store='dist" in text:
            self._each_for_itself = True
        match = _LINE.search(text)
        if match is None:
            return
        node = int(match["node"]) if match["node"] else None
        self._each_for_itself |= bool(node)
        alone = node is None or self._each_for_itself
        scope: Scope = "per_rank" if alone else "global"
        rank = OF_LINE if node is None else node
        if match["batch"]:
            yield from self._speed(match, scope, rank)
        for metric in ("epoch_time", "accuracy"):
            value = number(match[metric]) if match[metric] else None
            if value is not None:
                whose: Scope = "global" if metric == "accuracy" else scope
                yield Hit(metric, value, whose, int(match["epoch"]) + 1, rank)

    def _speed(self, match: re.Match[str], scope: Scope, rank: int) -> Iterator[Hit]:
        who = None if rank == OF_LINE else rank
        step, since = self._steps[who].at(match["epoch"], int(match["batch"]))
        rate, loss = number(match["rate"]), _LOSS.search(match["rest"])
        if rate is not None:
            yield Hit("samples_per_second", rate, scope, step, rank, steps=since)
        value = number(loss["loss"]) if loss else None
        if value is not None:
            yield Hit("loss", value, "per_rank", step, rank, steps=since)
