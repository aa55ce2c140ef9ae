"""The training loop of the reference trainer: equal batches, timed step by step."""

from __future__ import annotations

import math
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

import torch
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler

from hpc_train.jobs.strategies import TrainingRequest, unprofiled
from hpc_train.trainer import WorkloadError, checkpoint
from hpc_train.trainer.datasets import Pair, TrainingData
from hpc_train.trainer.emit import emit, write_line
from hpc_train.trainer.measurements import ExposedCommunication
from hpc_train.trainer.optimizer import parameter_type
from hpc_train.trainer.process_group import RankGroup
from hpc_train.trainer.stop_request import keep_worker
from hpc_train.trainer.strategies.base import LocalStep, ParallelModel
from hpc_train.trainer.trainer_options import BatchSize, Options

NODE = (os.environ.get("SLURMD_NODENAME") or socket.gethostname()).partition(".")[0]


GLOBAL_BATCH = "global_batch_size"


@dataclass(slots=True, kw_only=True)
class Progress:
    """What this rank has done so far, in all starts of its job.

    `loss` is the sum of the `losses` known here in the `steps` of the current epoch, of which a
    resume with another number of ranks knows those after it only;
    `seconds` is the time that led to the last checkpoint, without what was lost after it.
    """

    done: int = 0
    first_step_time: float = 0.0
    loss: float = 0.0
    losses: int = 0
    steps: int = 0
    seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def add(self, step: Mapping[str, float]) -> None:
        """Count a step."""
        self.first_step_time = self.first_step_time or step["step_time"]
        self.done, self.steps = self.done + 1, self.steps + 1
        if "loss" in step:
            self.loss, self.losses = self.loss + step["loss"], self.losses + 1

    def so_far(self) -> float:
        """Return the seconds of training."""
        return self.seconds + time.perf_counter() - self.started

    def saved(self) -> dict[str, int | float]:
        """Return what a checkpoint has of it, in addition to the number of steps."""
        return {
            "first_step_time": self.first_step_time,
            "loss": self.loss,
            "losses": self.losses,
            "steps": self.steps,
            "seconds": self.so_far(),
        }


class Stopped(Exception):
    """The job asked to stop; `saved` tells whether a checkpoint could be written."""

    def __init__(self, message: str, *, saved: bool) -> None:
        super().__init__(message)
        self.saved = saved


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
        WorkloadError: the training set does not fill one global batch, or the training has fewer
            steps than are to be profiled.
    """

    def __init__(
        self,
        options: Options,
        group: RankGroup,
        train_set: TrainingData,
        batch: BatchSize,
        request: TrainingRequest,
    ) -> None:
        self.options, self.group, self.train_set = options, group, train_set
        self.batch, self.request = batch, request
        self.per_epoch = len(train_set) // request.data_size // batch.size
        if not self.per_epoch:
            raise WorkloadError(
                f"a global batch of {batch.global_size} samples is larger than the "
                f"training set of {len(train_set)}"
            )
        epochs = options.epochs or math.ceil((options.steps or self.per_epoch) / self.per_epoch)
        self.steps = min(options.steps or epochs * self.per_epoch, epochs * self.per_epoch)
        self.epochs = math.ceil(self.steps / self.per_epoch)
        too_few = unprofiled(options.profile_steps, self.steps)
        if too_few:
            raise WorkloadError(f"--profile-steps: {too_few}")
        self.progress = Progress()
        self.resumed = 0  # steps of earlier starts of the job
        self.saved_at = time.monotonic()
        self.exposed = ExposedCommunication(options.profile_steps, group.device)

    def train(self, model: ParallelModel) -> TrainingResult:
        """Train `model` in place, from its last checkpoint; emit the step and epoch events.

        Raises:
            Stopped: the job asked to stop before the last step.
            CheckpointError: the last checkpoint is of another model.
        """
        self.progress = self._resumed(model)
        self.resumed = self.progress.done
        self.group.sums([0.0])  # all ranks have started; the first step opens no connections
        self.progress.started = time.perf_counter()
        try:
            loss = self._epochs(model)
            return TrainingResult(
                steps=self.progress.done,
                samples=self.progress.done * self.batch.global_size,
                first_step_time=self.progress.first_step_time,
                time_to_train=self.progress.so_far(),
                loss=loss,
            )
        finally:
            _finish_checkpoint()

    def _resumed(self, model: ParallelModel) -> Progress:
        if not self.options.checkpoints:
            return Progress()
        own: dict[str, Any] = {}
        done = checkpoint.resume(model.model, model.updates.optimizer, own)
        if done:
            size = self.batch.global_size
            saved = checkpoint.saved_values(done).get(GLOBAL_BATCH, size)
            # Else the next steps would train some samples of the epoch twice, others never.
            if saved != size:
                raise checkpoint.CheckpointError(
                    f"the checkpoint after step {done} is of global batches of {saved} samples, "
                    f"these are of {size}; --global-batch-size {saved} keeps them with any ranks "
                    "and strategy"
                )
            own.pop(GLOBAL_BATCH, None)
        model.updates.resume(done, own.pop("loss_scale", None))
        if done and self.group.rank == 0:
            write_line(f"resumed after step {done}")
        return Progress(**{**own, "done": done})

    def _loader(self, model: ParallelModel) -> Loader:
        options, part = self.options, (model.data_rank, self.request.data_size)
        order = Order(len(self.train_set), self.batch.size, part, options.seed)
        place = self.group.device, parameter_type(options.precision)
        return Loader(self.train_set, order, place, options.workers)

    def _epochs(self, model: ParallelModel) -> float:
        """Train the epochs that are left; return the mean loss of the last one."""
        loss, loader = 0.0, self._loader(model)
        first = (self.progress.done - self.progress.steps) // self.per_epoch + 1
        for epoch in range(first, self.epochs + 1):
            epoch_started = time.perf_counter()
            self._epoch(epoch, model, loader)
            loss = self._mean_loss()
            self._report_epoch(epoch, time.perf_counter() - epoch_started, loss)
        return loss

    def _epoch(self, epoch: int, model: ParallelModel, loader: Loader) -> None:
        trained = self.progress.done - (epoch - 1) * self.per_epoch
        batches = loader.epoch(epoch, trained)
        while self.progress.done < self.steps:
            self._fail_if_asked()
            with self.exposed.step(self.progress.done + 1):
                step = self._step(batches, model)
            if step is None:
                return
            self.progress.add(step)
            emit(
                event="step",
                epoch=epoch,
                step=self.progress.done,
                **step,
                node=NODE,
            )
            self._save_if_due(model)

    def _save_if_due(self, model: ParallelModel) -> None:
        """Save if the job asks to stop, or when due; without space, the training goes on.

        Raises:
            Stopped: it was asked.
        """
        done = self.progress.done
        if not self.options.checkpoints or done == self.steps:
            return
        stop, due = checkpoint.stop_or_due(due=self._due())
        failure = self._save(model, wait=stop) if stop or due else ""
        if failure and self.group.rank == 0:
            write_line(f"no checkpoint: {failure}")
        if stop:
            text = f"stopped after step {done} of {self.steps}, which is"
            raise Stopped(f"{text}{' not' * bool(failure)} saved", saved=not failure)

    def _due(self) -> bool:
        if (every := self.options.checkpoint_steps) is not None:
            return self.progress.done % every == 0
        return time.monotonic() - self.saved_at >= self.options.checkpoint_minutes * 60

    def _save(self, model: ParallelModel, *, wait: bool) -> str:
        """Save the state after this step; return why that was not possible."""
        self.saved_at = time.monotonic()
        scale = model.updates.scaler.get_scale()
        own = {**self.progress.saved(), "loss_scale": scale, GLOBAL_BATCH: self.batch.global_size}
        save = checkpoint.save if wait else checkpoint.async_save
        try:
            save(self.progress.done, model.model, model.updates.optimizer, own)
        except checkpoint.CheckpointError as error:
            return str(error)
        return ""

    def _step(self, batches: Iterator[Pair], model: ParallelModel) -> dict[str, float] | None:
        """Return what is known of a step: seconds, this rank's share of the samples, their loss.

        Ranks that train on the same samples have equal shares of them; one that knows no loss
        leaves it to another. `compute_time` are the seconds of forward passes that wait for none.
        """
        started = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            return None
        loss = model.step(*batch)
        self.group.synchronise()
        seconds = time.perf_counter() - started
        sharing = self.group.world_size // self.request.data_size
        known = {
            "step_time": seconds,
            "samples": self.batch.size if sharing == 1 else self.batch.size / sharing,
            "loss": loss,
            "grad_norm": model.updates.grad_norm,
            "compute_time": model.forward.seconds() if isinstance(model, LocalStep) else None,
        }
        return {
            name: value if isinstance(value, int) else float(value)
            for name, value in known.items()
            if value is not None
        }

    def _mean_loss(self) -> float:
        """Return the mean loss of the epoch over all ranks, and begin the next one."""
        total, count = self.group.sums([self.progress.loss, self.progress.losses])
        self.progress.loss, self.progress.losses, self.progress.steps = 0.0, 0, 0
        return total / count

    def _report_epoch(self, epoch: int, seconds: float, loss: float) -> None:
        if self.group.rank == 0:
            emit(event="epoch", epoch=epoch, epoch_time=seconds, loss=loss)
            write_line(f"epoch {epoch}/{self.epochs}: loss {loss:.4f}, {seconds:.3f} s")

    def _fail_if_asked(self) -> None:
        asked = (self.options.fail_rank, self.options.fail_step)
        if asked == (self.group.rank, self.progress.done + 1):
            _finish_checkpoint()  # so that a test knows from which step it is resumed
            text = f"rank {self.group.rank}: exits as requested by --fail-rank"
            print(text, file=sys.stderr, flush=True)
            # Like a crash: without clean-up and without notifying the other ranks.
            os._exit(self.options.fail_code)


def _finish_checkpoint() -> None:
    with suppress(checkpoint.CheckpointError):  # it was printed
        checkpoint.finish()


# Batches of a data-parallel rank: read by worker processes, ahead of the step that needs them.
#
# Workers matter where a sample is decoded or made; samples that are in memory need none.

_PREFETCHED = 2  # batches of each worker


class Order:
    """The indexes of each batch of a data-parallel rank in an epoch, all of the same size.

    `place` is its number and the number of such ranks. The global batches, as sets, do not depend
    on the number of ranks.
    """

    def __init__(self, size: int, batch_size: int, place: tuple[int, int], seed: int) -> None:
        rank, ranks = place
        self.sampler: DistributedSampler[int] = DistributedSampler(
            cast("Any", range(size)), num_replicas=ranks, rank=rank, seed=seed, drop_last=True
        )
        self.batches = BatchSampler(cast("Iterable[int]", self.sampler), batch_size, drop_last=True)
        self.first = 0

    def begin(self, epoch: int, first: int) -> None:
        """Continue with batch `first` of an epoch."""
        self.sampler.set_epoch(epoch)
        self.first = first

    def __iter__(self) -> Iterator[list[int]]:
        return islice(iter(self.batches), self.first, None)

    def __len__(self) -> int:
        return len(self.batches) - self.first


class Loader:
    """Reads the batches of one rank; on CUDA into pinned memory, copied while the GPU computes.

    `place` is the device that they go to, and the type of images there.
    """

    def __init__(
        self,
        data: TrainingData,
        order: Order,
        place: tuple[torch.device, torch.dtype],
        workers: int,
    ) -> None:
        self.data, self.order, self.place = data, order, place
        self.batches: DataLoader[Pair] = DataLoader(
            cast("Any", data),
            batch_sampler=cast("Any", order),
            collate_fn=as_it_is,
            num_workers=workers,
            prefetch_factor=_PREFETCHED if workers else None,
            persistent_workers=workers > 0,
            worker_init_fn=keep_worker,
            pin_memory=place[0].type == "cuda",
        )

    def epoch(self, epoch: int, first: int = 0) -> Iterator[Pair]:
        """Yield inputs and targets of each batch of an epoch from `first` on, on the device."""
        self.order.begin(epoch, first)
        for pair in self.batches:
            yield self.data.prepare(pair, *self.place)


def as_it_is(batch: Any) -> Any:
    """Return a batch, which the data set has already joined."""
    return batch
