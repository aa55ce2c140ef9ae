"""What a rank has done of a training, over all starts of its job."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hpc_train.workload import checkpoint

GLOBAL_BATCH = "global_batch_size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One optimiser step of this rank: seconds, its share of the samples, and its mean loss.

    `compute` are the seconds of its forward passes, if they wait for no other rank.

    Ranks that train on the same samples have equal shares of them. None: another rank has the loss,
    or gradients are not clipped.
    """

    time: float
    samples: float
    loss: float | None
    grad_norm: float | None = None
    compute: float | None = None

    def values(self) -> dict[str, float]:
        """Return what is known of it, by the names of events."""
        found = {
            "step_time": self.time,
            "samples": self.samples,
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "compute_time": self.compute,
        }
        return {name: value for name, value in found.items() if value is not None}


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

    def add(self, step: Step) -> None:
        """Count a step."""
        self.first_step_time = self.first_step_time or step.time
        self.done, self.steps = self.done + 1, self.steps + 1
        if step.loss is not None:
            self.loss, self.losses = self.loss + step.loss, self.losses + 1

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


def check_global_batch(done: int, size: int) -> None:
    """Check that a checkpoint, after `done` steps, is of global batches of `size` samples.

    Otherwise the steps after it would train some samples of the epoch twice, others never.

    Raises:
        CheckpointError: it is of others.
    """
    saved = checkpoint.saved_values(done).get(GLOBAL_BATCH, size)
    if saved != size:
        raise checkpoint.CheckpointError(
            f"the checkpoint after step {done} is of global batches of {saved} samples, these are "
            f"of {size}; --global-batch-size {saved} keeps them with any ranks and strategy"
        )
