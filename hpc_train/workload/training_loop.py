"""The training loop of the reference trainer: equal batches, timed step by step."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hpc_train.model.training_strategies import TrainingRequest
from hpc_train.workload import WorkloadError
from hpc_train.workload.datasets import Images, batches
from hpc_train.workload.emit import emit, write_line
from hpc_train.workload.process_group import RankGroup
from hpc_train.workload.strategies.base import ParallelModel
from hpc_train.workload.text_data import Tokens
from hpc_train.workload.trainer_options import BatchSize, Options

TEST_BATCH = 512
TEST_TOKENS = 4096
DTYPES = {"fp64": torch.float64}  # autocast keeps the parameters in fp32


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimiser step of this rank: seconds, its share of the samples, and its mean loss.

    Ranks that train on the same samples have equal shares of them. None: another rank has the loss.
    """

    time: float
    samples: float
    loss: float | None


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
        self,
        options: Options,
        group: RankGroup,
        train_set: Images | Tokens,
        batch: BatchSize,
        request: TrainingRequest,
    ) -> None:
        self.options, self.group, self.train_set = options, group, train_set
        self.batch, self.request = batch, request
        per_epoch = len(train_set) // request.data_size // batch.size
        if not per_epoch:
            raise WorkloadError(
                f"a global batch of {batch.global_size} samples is larger than the "
                f"training set of {len(train_set)}"
            )
        epochs = options.epochs or (math.ceil(options.steps / per_epoch) if options.steps else 1)
        self.steps = min(options.steps or epochs * per_epoch, epochs * per_epoch)
        self.epochs = math.ceil(self.steps / per_epoch)
        self.done = 0

    def train(self, model: ParallelModel) -> TrainingResult:
        """Train `model` in place and emit the step and epoch events."""
        self.group.sums([0.0])  # all ranks have started; the first step opens no connections
        started = time.perf_counter()
        first, loss = 0.0, 0.0
        for epoch in range(1, self.epochs + 1):
            epoch_started = time.perf_counter()
            steps = list(self._epoch(epoch, model))
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

    def _epoch(self, epoch: int, model: ParallelModel) -> Iterator[Step]:
        place = (model.data_rank, self.request.data_size)
        order = batches(self.train_set, self.batch.size, place, self.options.seed, epoch)
        while self.done < self.steps:
            self._fail_if_asked()
            step = self._step(order, model)
            if step is None:
                return
            self.done += 1
            emit(
                event="step",
                epoch=epoch,
                step=self.done,
                step_time=step.time,
                samples=step.samples,
                **({} if step.loss is None else {"loss": step.loss}),
            )
            yield step

    def _step(self, order: Iterator[list[int]], model: ParallelModel) -> Step | None:
        started = time.perf_counter()
        indexes = next(order, None)
        if indexes is None:
            return None
        inputs, targets = fetch(self.train_set, indexes, self.group, self.options.precision)
        loss = model.step(inputs, targets)
        self.group.synchronise()
        seconds = time.perf_counter() - started
        sharing = self.group.world_size // self.request.data_size
        samples = len(indexes) if sharing == 1 else len(indexes) / sharing
        return Step(time=seconds, samples=samples, loss=None if loss is None else float(loss))

    def _mean_loss(self, steps: list[Step]) -> float:
        losses = [step.loss for step in steps if step.loss is not None]
        total, count = self.group.sums([sum(losses), len(losses)])
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


def fetch(
    data: Images | Tokens, indexes: list[int], group: RankGroup, precision: str
) -> tuple[Tensor, Tensor]:
    """Return inputs and targets on this rank's device; images in the type of the parameters."""
    inputs, targets = data.fetch(indexes, group.device)
    if inputs.is_floating_point():
        inputs = inputs.to(DTYPES.get(precision, torch.float32))
    return inputs, targets


@torch.no_grad()
def measure_accuracy(
    model: nn.Module, test: Images | Tokens, group: RankGroup, precision: str
) -> float:
    """Return the fraction, 0..1, of the labels or tokens of the test set that is predicted right.

    Each sample is counted once: rank r takes samples r, r + world_size, ... and the counts are
    summed. Rank 0 alone would take world_size times as long while the others hold their devices
    and wait. `model` must be whole and not wrapped: the shares may differ by a sample.
    """
    model.eval()
    mine = list(range(group.rank, len(test), group.world_size))
    correct = predicted = 0
    size = TEST_BATCH
    if isinstance(test, Tokens):
        size = max(1, TEST_TOKENS // test.samples.shape[1])
    for start in range(0, len(mine), size):
        inputs, targets = fetch(test, mine[start : start + size], group, precision)
        correct += int((model(inputs).argmax(dim=-1) == targets).sum())
        predicted += targets.numel()
    right, seen = group.sums([correct, predicted])
    return right / seen
