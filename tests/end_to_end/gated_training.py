"""A DDP training that a test holds: at each of its gates it waits for the file `go-STEP`.

It prints each step with its loss, and at the end the digest of the weights.
"""

import hashlib
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from hpc_train.trainer import checkpoint
from hpc_train.trainer.emit import emit
from hpc_train.trainer.process_group import any_rank
from hpc_train.trainer.spawn_ranks import leave

SAMPLES, BATCH = 64, 4


def main(steps: int, every: int, gate: int, gates: Path) -> int:
    """Save after `every` steps; wait after each `gate` steps, unless 0, for a file in `gates`."""
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.9)
    own: dict[str, Any] = {}
    done = checkpoint.resume(model, optimizer, own)
    if own:
        schedule.load_state_dict(own["schedule"])
    emit(event="start", pid=os.getpid(), resumed=done)
    for step in range(done + 1, steps + 1):
        began = time.perf_counter()
        # As long as a forward pass of a small model.
        time.sleep(0.05)
        loss, samples = train_step(step, model, optimizer)
        schedule.step()
        took = time.perf_counter() - began
        emit(event="step", step=step, loss=loss, seen=samples, step_time=took)
        if gate and step % gate == 0:
            wait_for_file(gates / f"go-{step}", step)
        if (stop := checkpoint.should_stop()) or step % every == 0:
            save = checkpoint.save if stop else checkpoint.async_save
            save(step, model, optimizer, {"schedule": schedule.state_dict()})
        if stop:
            return checkpoint.RESUBMIT
    checkpoint.finish()
    weights = b"".join(value.numpy().tobytes() for value in net.state_dict().values())
    emit(event="end", weights=hashlib.sha256(weights).hexdigest())
    return 0


def train_step(
    step: int, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[float, list[int]]:
    """Train on this rank's samples of a step; return the loss and the samples."""
    of_epoch = SAMPLES // (BATCH * distributed.get_world_size())
    epoch, place = divmod(step - 1, of_epoch)
    sampler: DistributedSampler[int] = DistributedSampler(range(SAMPLES))  # type: ignore[arg-type]
    sampler.set_epoch(epoch)
    samples = list(sampler)[place * BATCH : (place + 1) * BATCH]
    data = torch.randn(SAMPLES, 8, generator=torch.Generator().manual_seed(1))[samples]
    loss = nn.functional.mse_loss(model(data), data.sum(dim=1, keepdim=True).sin())
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
    return float(loss.detach()), samples


def wait_for_file(path: Path, step: int) -> None:
    """Wait until the test makes it, or until the job asks to stop.

    First for the checkpoint that is under way: the test knows from which step a start resumes.
    """
    with suppress(checkpoint.CheckpointError):
        checkpoint.finish()
    emit(event="held", held=step)
    filled: list[bytes] = []
    while not checkpoint.should_stop() and not any_rank(path.exists()):
        time.sleep(0.02)
        if path.with_name(f"fill-{distributed.get_rank()}").exists():
            filled.append(b"\1" * (1 << 24))


if __name__ == "__main__":
    total, between, held = map(int, sys.argv[1:4])
    code = main(total, between, held, Path(sys.argv[4]))
    sys.stdout.flush()
    leave(code)
