"""MXNet's Speedometer: `Node[0] Epoch[0] Batch [20-40]\\tSpeed: 1234.5 samples/sec\\taccuracy=0.1`.

The rate [1/s] is that of the whole job where one node prints for all (Horovod, MLPerf); with
`kv_store='dist..`, with several nodes or without `Node[..]` it is that of one worker. `Time cost`
[s] of an epoch likewise. `Validation-accuracy` is a fraction, of the samples of the node that
prints. Gluon's `[Epoch 1] validation:
acc-top1=` is a fraction or, in GluonCV's scripts, a percentage: as soon as an accuracy of the log,
also that of the training or the best five, is above 1. Old versions print a line for each metric,
all with the same rate.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.base import OF_LINE, Hit
from hpc_train.records.parsing.number import NUMBER, number, scaled
from hpc_train.records.parsing.step_counts import RunningStep, StepPosition

_LINE = re.compile(
    rf"(?:Node\[(?P<node>\d{{1,7}})\] +(?:[\d:,. -]{{0,30}}INFO:root:)?)?"
    rf"(?:Epoch|Iter)\[(?P<epoch>\d{{1,9}})\] "
    rf"(?:Batch ?\[(?:(?P<first>\d{{1,9}})-)?(?P<batch>\d{{1,9}})\][\t ]{{1,8}}"
    rf"Speed: (?P<rate>{NUMBER}) samples/sec"
    rf"(?P<rest>.{{0,1000}})"
    rf"|Time cost=(?P<epoch_time>{NUMBER})"
    rf"|Validation-(?:accuracy|acc-top1|top_k_accuracy_1)=(?P<accuracy>{NUMBER}))"
)
_GLUON = re.compile(
    rf"\[Epoch (?P<epoch>\d{{1,9}})\] "
    rf"(?:time cost: (?P<epoch_time>{NUMBER})"
    rf"|training: (?:accuracy|acc-top1)=(?P<training>{NUMBER})"
    rf"|validation: (?:accuracy|acc-top1)=(?P<accuracy>{NUMBER})"
    rf"(?:,? {{1,4}}acc-top5=(?P<best>{NUMBER}))?)"
)
_NAME = re.compile(r"\s{1,8}([\w-]{1,40})=")
_LOSS = re.compile(rf"\b(?:Train-)?(?:cross-entropy|loss)=(?P<loss>{NUMBER})")


class MxnetSpeedometer:
    """Parser of the lines of MXNet's training callbacks."""

    title = "MXNet Speedometer"
    literals = (
        *(b"]\tSpeed: ", b" Speed: ", b"] Time cost=", b"] Validation-"),
        *(b"] time cost: ", b"] training: ", b"] validation: "),
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
        "accuracy": "per_rank",
    }
    wants_next = False

    def __init__(self) -> None:
        self._steps: defaultdict[int | None, RunningStep] = defaultdict(RunningStep)
        self._each_for_itself = False
        self._in_percent = False
        self._told: dict[int | None, tuple[StepPosition, str, set[str]]] = {}

    def read(self, line: Line) -> Iterable[Hit]:
        """Return the values that one callback printed."""
        text = line.text
        if "kv_store='dist" in text:
            self._each_for_itself = True
        match = _LINE.search(text)
        return self._gluon(text) if match is None else self._classic(match)

    def _classic(self, match: re.Match[str]) -> Iterator[Hit]:
        node = int(match["node"]) if match["node"] else None
        self._each_for_itself |= bool(node)
        alone = node is None or self._each_for_itself
        scope: Scope = "per_rank" if alone else "global"
        rank = OF_LINE if node is None else node
        if match["batch"]:
            yield from self._speed(match, scope, rank)
            return
        for metric in ("epoch_time", "accuracy"):
            value = number(match[metric]) if match[metric] else None
            if value is not None:
                whose: Scope = "per_rank" if metric == "accuracy" else scope
                yield Hit(metric, value, whose, int(match["epoch"]) + 1, rank)

    def _speed(self, match: re.Match[str], scope: Scope, rank: int) -> Iterator[Hit]:
        who = None if rank == OF_LINE else rank
        batch = int(match["batch"])
        step, since = place = self._steps[who].at(match["epoch"], batch)
        since = max(1, batch - int(match["first"])) if match["first"] else since
        rate, loss = number(match["rate"]), _LOSS.search(match["rest"])
        if rate is not None and self._is_new(who, place, match):
            yield Hit("samples_per_second", rate, scope, step, rank, steps=since)
        value = number(loss["loss"]) if loss else None
        if value is not None:
            yield Hit("loss", value, "per_rank", step, rank, steps=since)

    def _is_new(self, who: int | None, place: StepPosition, match: re.Match[str]) -> bool:
        """Whether a rate differs from that of the previous line, which showed another metric."""
        name, rate = _NAME.match(match["rest"]), match["rate"]
        shown = name[1] if name else ""
        before, stated, names = self._told.get(who, (place, "", set()))
        if (before, stated) == (place, rate) and shown not in names:
            names.add(shown)
            return False
        self._told[who] = place, rate, {shown}
        return True

    def _gluon(self, text: str) -> Iterator[Hit]:
        match = _GLUON.search(text)
        if match is None:
            return
        epoch, took = int(match["epoch"]) + 1, number(match["epoch_time"] or "")
        if took is not None:
            yield Hit("epoch_time", took, "per_rank", epoch)
        shown = (number(match[name] or "") for name in ("training", "accuracy", "best"))
        self._in_percent |= any(value is not None and value > 1 for value in shown)
        accuracy = number(match["accuracy"] or "")
        if accuracy is not None:
            scale = 0.01 if self._in_percent else 1.0
            yield Hit("accuracy", scaled(accuracy, scale), "global", epoch)
