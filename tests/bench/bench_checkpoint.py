"""What a training pays for its restarts: the calls of each step, and a checkpoint.

One rank trains an MLP in steps of about 50 ms on one thread, with and without `should_stop` (which
also starts the time of a hang again) and an event, in turns. A checkpoint is written while the
training waits (`save`), and beside it (`async_save`). Goals: the calls take 0.5 % of a step, and
checkpoints at the default interval of the reference trainer 1 %, if all that the processor does for
them is taken from the training.
"""

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from hpc_train.trainer import checkpoint
from hpc_train.trainer.emit import emit
from hpc_train.trainer.trainer_options import parse_options

STEPS, ROUNDS = 20, 9
Row = tuple[str, str, str]


class Training:
    """An MLP with AdamW, of 8.4 million parameters."""

    def __init__(self) -> None:
        self.model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8)))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.inputs = torch.randn(64, 1024)

    def step(self) -> None:
        """Train one step."""
        self.optimizer.zero_grad()
        self.model(self.inputs).square().mean().backward()
        self.optimizer.step()


def seconds(action: Callable[[], object], times: int = STEPS) -> float:
    """Return the CPU seconds of one call."""
    started = time.process_time()
    for _ in range(times):
        action()
    return (time.process_time() - started) / times


def calls() -> None:
    """Do what a step adds in a job with `lifecycle`."""
    emit(event="step", step=1, step_time=0.05, samples=64, loss=1.0)
    checkpoint.should_stop()


def measure() -> list[Row]:
    """Return the rows: what, CPU ms, its share of a step or the interval."""
    training = Training()
    training.step()
    steps = [seconds(training.step) for _ in range(ROUNDS)]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        added = [seconds(calls, 200) for _ in range(ROUNDS)]
    step = statistics.median(steps)
    call = statistics.median(added)
    waits, waited = saves(training, checkpoint.save)
    copies, copied = saves(training, checkpoint.async_save)
    size = sum(f.stat().st_size for f in checkpoint.checkpoints_folder().rglob("*.distcp")) / 2
    return [
        ("a step", f"{step * 1000:.1f}", "100 %"),
        ("event and should_stop", f"{call * 1000:.3f}", f"{call / step:.2%} (goal 0.5 %)"),
        (f"save of {size / 2**20:.0f} MiB", f"{waits * 1000:.0f}", shares(waits, waited)),
        ("async_save", f"{copies * 1000:.0f}", shares(copies, copied)),
    ]


def saves(training: Training, save: Callable[..., object]) -> tuple[float, float]:
    """Return the CPU seconds of a checkpoint, and those for which the training waits."""
    spent, waited = [], []
    for number in range(ROUNDS):
        cpu, wall = time.process_time(), time.perf_counter()
        save(number, training.model, training.optimizer)
        waited.append(time.perf_counter() - wall)
        checkpoint.finish()
        spent.append(time.process_time() - cpu)
    return statistics.median(spent), statistics.median(waited)


def shares(cpu: float, wait: float) -> str:
    """Return what a checkpoint takes of the default interval."""
    interval = parse_options(["--batch-size", "1"]).checkpoint_minutes * 60
    share = max(cpu, wait) / interval
    return f"the training waits {wait * 1000:.0f} ms; {share:.3%} of {interval:.0f} s (goal 1 %)"


def main() -> None:
    """Measure in an empty folder, and print a table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[checkpoint.FOLDER] = f"{folder}/checkpoints"
        rows = measure()
    rows.insert(0, ("what", "CPU ms", "share of a step"))
    rows.insert(1, ("---", "---", "---"))
    sys.stdout.write(f"{__doc__}\nload {os.getloadavg()[0]:.1f}, torch {torch.__version__}\n\n")
    sys.stdout.writelines(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    main()
