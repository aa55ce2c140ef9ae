"""Training loops of tutorials, and the number of ranks that any program prints."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from hpc_train.logs.formats.base import OF_LINE, Hit, RunningStep, StepPosition
from hpc_train.logs.formats.number import NUMBER, number, scaled
from hpc_train.logs.line import Line
from hpc_train.logs.record import Scope

# Tutorials of PyTorch, AWS, SageMaker and NERSC. FSDP prints losses over all ranks.

_EPOCH = r"(?P<epoch>\d{1,9})"
_N = NUMBER
_GPU = r"\[(?:GPU|RANK) ?(?P<gpu>\d{1,7})\] Epoch "


class _Fact(NamedTuple):
    """The metric of a group, and whether it belongs to the run, the epoch, or a step."""

    metric: str
    scope: Scope
    of: Literal["run", "epoch", "step"] = "run"
    scale: float = 1.0


class _Shape(NamedTuple):
    """A line: its groups `epoch`, `gpu` (a rank) and `batch` state its position.

    Batches are counted from `first`. Other groups are facts, in this order.
    """

    pattern: re.Pattern[str]
    facts: Mapping[str, _Fact]
    first: int = 1


_SHAPES = (
    _Shape(
        re.compile(
            rf"Time taken for epoch {_EPOCH} is (?P<time>{_N}) sec"
            rf"(?:, avg (?P<rate>{_N}) samples/sec)?"
        ),
        {
            "time": _Fact("epoch_time", "global", "epoch"),
            "rate": _Fact("samples_per_second", "global"),
        },
    ),
    _Shape(
        re.compile(rf"Time taken for \d{{1,9}} steps is {_N} sec, avg (?P<rate>{_N}) samples/sec"),
        {"rate": _Fact("samples_per_second", "global")},
    ),
    _Shape(
        re.compile(rf"(?:  |- )Avg train loss=(?P<loss>{_N})"),
        {"loss": _Fact("loss", "global", "epoch")},
    ),
    _Shape(
        re.compile(
            rf"Train samples (?P<samples>{_N}) time (?P<time>{_N}) ?s "
            rf"rate (?P<rate>{_N}) samples/s"
        ),
        {
            "samples": _Fact("samples", "per_rank"),
            "time": _Fact("epoch_time", "per_rank"),
            "rate": _Fact("samples_per_second", "per_rank"),
        },
    ),
    _Shape(
        re.compile(
            rf"Train Epoch: {_EPOCH} \[ ?\d{{1,12}}/\d{{1,12}} \( ?[\d.]{{1,8}}%\)\]\s+"
            rf"(?:Loss: |loss=)(?P<loss>{_N})"
        ),
        {"loss": _Fact("loss", "per_rank")},
    ),
    _Shape(
        re.compile(rf"Train Epoch: \s{{0,4}}{_EPOCH},?\s{{1,4}}Loss: \s{{0,4}}(?P<loss>{_N})"),
        {"loss": _Fact("loss", "global", "epoch")},
    ),
    _Shape(
        re.compile(
            r"(?i:Test set): .{0,80}?Accuracy: (?:(?P<right>\d{1,12})/(?P<total>\d{1,12})"
            rf"|(?P<percent>{_N}) ?%)"
        ),
        {"percent": _Fact("accuracy", "global", "epoch", 0.01)},
    ),
    _Shape(
        re.compile(rf"Validation loss: {_N} acc: (?P<accuracy>{_N})"),
        {"accuracy": _Fact("accuracy", "per_rank", "epoch")},
    ),
    _Shape(
        re.compile(rf"CUDA event elapsed time: (?P<time>{_N}) ?sec"),
        {"time": _Fact("time_to_train", "global")},
    ),
    _Shape(
        re.compile(
            rf"{_GPU}{_EPOCH} \| Batchsize: (?P<size>\d{{1,9}}) \| Steps: (?P<steps>\d{{1,9}})"
        ),
        {"size": _Fact("batch_size", "per_rank"), "steps": _Fact("steps", "per_rank", "epoch")},
    ),
    _Shape(
        re.compile(rf"{_GPU}{_EPOCH} \| Iter (?P<batch>\d{{1,12}}) \| Train Loss (?P<loss>{_N})"),
        {"loss": _Fact("loss", "per_rank", "step")},
        first=0,
    ),
    _Shape(
        re.compile(
            rf"Batch (?P<batch>\d{{1,12}}) Loss: (?P<loss>{_N}), Speed: (?P<rate>{_N}) samples/sec"
            rf"(?:, lr: (?P<lr>{_N}))?"
        ),
        {
            "loss": _Fact("loss", "per_rank", "step"),
            "rate": _Fact("samples_per_second", "global", "step"),
            "lr": _Fact("learning_rate", "global", "step"),
        },
        first=0,
    ),
    _Shape(
        re.compile(rf"^\[{_EPOCH}, {{1,12}}(?P<batch>\d{{1,12}})\] loss: (?P<loss>{_N})"),
        {"loss": _Fact("loss", "per_rank", "step")},
    ),
)
_NOWHERE = StepPosition(0, 1)


class Tutorials:
    """Parser of the lines above; remembers each rank's epoch and steps."""

    title = "Tutorials of PyTorch, AWS, SageMaker and NERSC"
    literals = (
        *(b"Time taken for ", b"Avg train loss=", b"Train samples ", b"Train Epoch: "),
        *(b"Test set: ", b"Validation loss: ", b"CUDA event elapsed time: ", b"| Batchsize: "),
        *(b"| Train Loss ", b", Speed: ", b"] loss: "),
    )
    sample = (
        "Time taken for epoch 1 is 9.5 sec, avg 8.3 samples/sec\n  Avg train loss=0.57\n"
        "CUDA event elapsed time: 40.5sec\nTest set: Average loss: 0.1, Accuracy: 97/100 (97%)"
    )
    wants_next = False

    def __init__(self) -> None:
        self._epochs: dict[int | None, int] = {}
        self._steps: defaultdict[int | None, RunningStep] = defaultdict(RunningStep)

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the values of the first shape that matches the line."""
        for shape in _SHAPES:
            # Ranks may write several on one line.
            matches = list(shape.pattern.finditer(line.text))
            for match in matches:
                yield from self._hits(shape, match.groupdict(), line.rank)
            if matches:
                return

    def _hits(
        self, shape: _Shape, found: Mapping[str, str | None], rank: int | None
    ) -> Iterator[Hit]:
        gpu, epoch, batch = found.get("gpu"), found.get("epoch"), found.get("batch")
        who = int(gpu) if gpu else rank
        if epoch:
            self._epochs[who] = int(epoch)
        own = self._epochs.get(who)
        at = self._steps[who].at(own, int(batch) + 1 - shape.first) if batch else _NOWHERE
        places = {"run": None, "epoch": own, "step": at.step}
        rank = who if gpu else OF_LINE
        if found.get("right"):
            yield from _accuracy(found, own)
        for group, fact in shape.facts.items():
            text = found[group]
            value = number(text) if text else None
            if value is not None:
                # A rate is that of one step; a loss may be the mean of many steps.
                steps = at.since if fact.metric == "loss" else 1
                place = places[fact.of]
                yield Hit(
                    fact.metric, scaled(value, fact.scale), fact.scope, place, rank, steps=steps
                )


def _accuracy(found: Mapping[str, str | None], epoch: int | None) -> Iterator[Hit]:
    right, total = int(found["right"] or 0), int(found["total"] or 0)
    if 0 <= right <= total > 0:
        yield Hit("accuracy", right / total, "global", epoch)


# Arguments that programs print when they start -> the number of ranks.
#
# | line | world_size |
# |---|---|
# | `Namespace(..., dist_url='env://', world_size=16)`, on one line or one argument per line | 16 |
# | `Namespace(..., distributed_world_size=8, ...)` (fairseq) | 8 |
# | `running on rank 0 with world size 8` | 8 |
# | `\| distributed init (rank 0, world 2): env://` (LAVIS) | 2 |
#
# The scope is global. An argument of 1 or less is often a default; together with
# `multiprocessing_distributed`, the argument is the number of nodes. Both are ignored.

_ARGUMENT = re.compile(r"(?<![\w.])(?:distributed_)?world_size=(\d{1,9})(?=[,)\s]|$)")
_SENTENCE = re.compile(
    r"\b[Rr]unning on rank \d{1,9},? (?:with|of) world[ _]size:? (\d{1,9})\b"
    r"|^\| distributed init \(rank \d{1,9}, world (\d{1,9})\): "
)
_NODES = "multiprocessing_distributed="
_MOST_LINES = 1000


class WorldSize:
    """Parser of the arguments; remembers an open `Namespace(`."""

    title = "Arguments of training programs"
    literals = (b"Namespace(", b"unning on rank ", b"| distributed init (rank ")
    sample = "Namespace(batch_size=64, dist_url='env://', distributed=True, world_size=16)"

    def __init__(self) -> None:
        self._open = 0
        self._found = 0

    @property
    def wants_next(self) -> bool:
        """Whether the arguments continue on the next line."""
        return self._open > 0

    def read(self, line: Line) -> Iterator[Hit]:
        """Yield the number of ranks, at the end of the arguments."""
        text = line.text
        sentence = _SENTENCE.search(text)
        if sentence is not None:
            size = float(sentence[1] or sentence[2])
            yield Hit("world_size", size, "global", once="world_size")
            return
        start = text.find("Namespace(")
        if start >= 0:
            self._open, self._found, text = _MOST_LINES, 0, text[start:]
        elif not self._open:
            return
        if _NODES in text:
            self._open = 0
            return
        self._open -= 1
        found = _ARGUMENT.search(text)
        self._found = int(found[1]) if found else self._found
        # Values may contain brackets: with one argument per line, an argument ends at the line end.
        if text.endswith(")") or (start >= 0 and not text.endswith(",")):
            self._open = 0
            if self._found > 1:
                yield Hit("world_size", float(self._found), "global", once="world_size")
