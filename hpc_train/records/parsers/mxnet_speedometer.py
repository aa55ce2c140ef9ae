"""MXNet's Speedometer: `Node[0] Epoch[0] Batch [20-40]\\tSpeed: 1234.5 samples/sec\\taccuracy=0.1`.

The rate [1/s] is that of the whole job if one node prints for all (Horovod, MLPerf). With
`kv_store='dist..`, with several nodes, or without `Node[..]`, it is that of one worker. The same
scope applies to `Time cost` [s] of an epoch. `Validation-accuracy` is a fraction, of the samples of
the printing node. Gluon's `[Epoch 1] validation: acc-top1=` is a fraction or, in GluonCV's scripts,
a percentage. It is read as a percentage as soon as any accuracy of the log, also of the training or
top 5, is above 1. Old versions print a line for each metric, all with the same rate.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.log_parser import OF_LINE, Hit
from hpc_train.records.parsing.printed_numbers import NUMBER, number, scaled
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
_CELLS = ("epoch", "first", "batch", "rate", "rest")
_NAME = re.compile(r"\s{1,8}([\w-]{1,40})=")
_LOSS = re.compile(rf"\b(?:Train-)?(?:cross-entropy|loss)=(?P<loss>{NUMBER})")


_NOTHING: tuple[StepPosition | None, str, list[str]] = (None, "", [])


class _Shown(NamedTuple):
    """Position of some batches, their rate unless a previous line had it, and the loss."""

    step: int
    since: int
    rate: float | None
    loss: float | None


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
        self._printed: dict[int | None, tuple[StepPosition | None, str, list[str]]] = {}

    def read(self, line: Line) -> Iterable[Hit]:
        """Return the values that one callback printed."""
        text = line.text
        if "kv_store='dist" in text:
            self._each_for_itself = True
        match = _LINE.search(text)
        return self._gluon(text) if match is None else self._classic(match)

    def _whose(self, number: str | None) -> tuple[Scope, int]:
        """Return the scope of a node's rate, and its rank."""
        node = int(number) if number else None
        self._each_for_itself |= bool(node)
        alone = node is None or self._each_for_itself
        return "per_rank" if alone else "global", OF_LINE if node is None else node

    def _classic(self, match: re.Match[str]) -> Iterator[Hit]:
        scope, rank = self._whose(match["node"])
        if match["batch"]:
            yield from self._speed(match.group(*_CELLS), scope, rank)
            return
        for metric in ("epoch_time", "accuracy"):
            value = number(match[metric]) if match[metric] else None
            if value is not None:
                whose: Scope = "per_rank" if metric == "accuracy" else scope
                yield Hit(metric, value, whose, int(match["epoch"]) + 1, rank)

    def _speed(self, cells: Sequence[str], scope: Scope, rank: int) -> Iterator[Hit]:
        step, since, rate, loss = self._shown(cells, rank)
        if rate is not None:
            yield Hit("samples_per_second", rate, scope, step, rank, steps=since)
        if loss is not None:
            yield Hit("loss", loss, "per_rank", step, rank, steps=since)

    def _shown(self, cells: Sequence[str], rank: int) -> _Shown:
        epoch, first, number_of_batch, shown_rate, rest = cells
        who = None if rank == OF_LINE else rank
        batch = int(number_of_batch)
        step, since = place = self._steps[who].at(epoch, batch)
        since = max(1, batch - int(first)) if first else since
        rate, loss = number(shown_rate), _LOSS.search(rest)
        if rate is not None and not self._is_new(who, place, shown_rate, rest):
            rate = None
        return _Shown(step, since, rate, number(loss["loss"]) if loss else None)

    def _is_new(self, who: int | None, place: StepPosition, rate: str, rest: str) -> bool:
        """Whether a rate differs from that of the previous line, which showed another metric."""
        before, stated, shown = self._printed.get(who, _NOTHING)
        if stated == rate and before == place and _name(rest) not in map(_name, shown):
            shown.append(rest)
            return False
        self._printed[who] = place, rate, [rest]
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


def _name(rest: str) -> str:
    """Return the name of the first metric on a line."""
    name = _NAME.match(rest)
    return name[1] if name else ""
