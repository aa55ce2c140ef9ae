"""The network of the reference trainer and its training loop: equal batches, timed step by step."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from hpc_train.workload import WorkloadError
from hpc_train.workload.datasets import Images, batches
from hpc_train.workload.emit import emit, write_line
from hpc_train.workload.process_group import RankGroup
from hpc_train.workload.trainer_options import BatchSize, Options

CLASSES = 10
TEST_BATCH = 512


def make_cnn(channels: int, width: int) -> nn.Module:
    """Return a small CNN: float images (n, channels, h, w) of any size to logits (n, 10).

    No batch normalisation: its statistics are those of one rank's batch, so the result would depend
    on the number of ranks at the same global batch.
    """
    wide = 2 * width
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, wide, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(wide, wide, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * wide, CLASSES),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimiser step of this rank; seconds, samples and mean loss of its own batch."""

    time: float
    samples: int
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingResult:
    """Result of the training over all ranks; `loss` is that of the last epoch, times are in s."""

    steps: int
    samples: int
    first_step_time: float
    time_to_train: float
    loss: float


class Trainer:
    """Trains this rank's share of each global batch, for the requested epochs or steps.

    Raises:
        WorkloadError: the training set does not fill one global batch.
    """

    def __init__(
        self, options: Options, group: RankGroup, train_set: Images, batch: BatchSize, rate: float
    ) -> None:
        self.options, self.group, self.train_set = options, group, train_set
        self.batch, self.rate = batch, rate
        per_epoch = len(train_set) // group.world_size // batch.size
        if not per_epoch:
            raise WorkloadError(
                f"a global batch of {batch.global_size} samples is larger than the "
                f"training set of {len(train_set)}"
            )
        epochs = options.epochs or (math.ceil(options.steps / per_epoch) if options.steps else 1)
        self.steps = min(options.steps or epochs * per_epoch, epochs * per_epoch)
        self.epochs = math.ceil(self.steps / per_epoch)
        self.done = 0

    def train(self, model: nn.Module) -> TrainingResult:
        """Train `model` in place and emit the step and epoch events."""
        optimiser = torch.optim.SGD(model.parameters(), lr=self.rate, momentum=0.9)
        model.train()
        self.group.sums([0.0])  # all ranks have started; the first step opens no connections
        started = time.perf_counter()
        first, loss = 0.0, 0.0
        for epoch in range(1, self.epochs + 1):
            epoch_started = time.perf_counter()
            steps = list(self._epoch(epoch, model, optimiser))
            first = first or steps[0].time
            loss = self._mean_loss(steps)
            self._report_epoch(epoch, time.perf_counter() - epoch_started, loss)
        return TrainingResult(
            steps=self.done,
            samples=self.done * self.batch.global_size,
            first_step_time=first,
            time_to_train=time.perf_counter() - started,
            loss=loss,
        )

    def _epoch(
        self, epoch: int, model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> Iterator[Step]:
        order = batches(self.train_set, self.batch.size, self.group, self.options.seed, epoch)
        while self.done < self.steps:
            self._fail_if_asked()
            step = self._step(order, model, optimiser)
            if step is None:
                return
            self.done += 1
            emit(
                event="step",
                epoch=epoch,
                step=self.done,
                step_time=step.time,
                samples=step.samples,
                loss=step.loss,
            )
            yield step

    def _step(
        self, order: Iterator[list[int]], model: nn.Module, optimiser: torch.optim.Optimizer
    ) -> Step | None:
        started = time.perf_counter()
        indexes = next(order, None)
        if indexes is None:
            return None
        images, labels = self.train_set.fetch(indexes, self.group.device)
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        self.group.synchronise()
        seconds = time.perf_counter() - started
        return Step(time=seconds, samples=len(labels), loss=float(loss.detach()))

    def _mean_loss(self, steps: list[Step]) -> float:
        total, count = self.group.sums([sum(step.loss for step in steps), len(steps)])
        return total / count

    def _report_epoch(self, epoch: int, seconds: float, loss: float) -> None:
        if self.group.rank == 0:
            emit(event="epoch", epoch=epoch, epoch_time=seconds, loss=loss)
            write_line(f"epoch {epoch}/{self.epochs}: loss {loss:.4f}, {seconds:.3f} s")

    def _fail_if_asked(self) -> None:
        asked = (self.options.fail_rank, self.options.fail_step)
        if asked == (self.group.rank, self.done + 1):
            print(
                f"rank {self.group.rank}: exits as requested by --fail-rank",
                file=sys.stderr,
                flush=True,
            )
            # Like a crash: without clean-up and without notifying the other ranks.
            os._exit(self.options.fail_code)


@torch.no_grad()
def measure_accuracy(model: nn.Module, test: Images, group: RankGroup) -> float:
    """Return the fraction, 0..1, of the test set that is classified correctly.

    Each sample is counted once: rank r takes samples r, r + world_size, ... and the counts are
    summed. Rank 0 alone would take world_size times as long while the others hold their devices
    and wait. `model` must not be wrapped: the shares may differ by a sample.
    """
    model.eval()
    mine = list(range(group.rank, len(test), group.world_size))
    correct = 0
    for start in range(0, len(mine), TEST_BATCH):
        images, labels = test.fetch(mine[start : start + TEST_BATCH], group.device)
        correct += int((model(images).argmax(dim=1) == labels).sum())
    right, seen = group.sums([correct, len(mine)])
    return right / seen
