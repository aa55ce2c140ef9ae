"""The reference trainer, with the output of the hand-written ones and its own arguments."""

from __future__ import annotations

import os
import time

from hpc_train.trainer.strategies.base import ParallelModel
from hpc_train.trainer.train import main
from hpc_train.trainer.training_loop import Trainer, TrainingResult

_train = Trainer.train


def timed(self: Trainer, model: ParallelModel) -> TrainingResult:
    """Train; print samples, wall and CPU seconds of the loop."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = _train(self, model)
    if os.environ.get("RANK", "0") == "0":
        print("samples", result.samples, time.perf_counter() - wall, time.process_time() - cpu)
    return result


if __name__ == "__main__":
    Trainer.train = timed  # type: ignore[method-assign]
    raise SystemExit(main())
