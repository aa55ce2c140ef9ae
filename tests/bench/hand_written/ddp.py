"""A process for each rank, as in PyTorch's tutorial "Multinode Training" (DDP with torchrun).

Arguments: the global batch and the number of steps. Rank 0 prints samples of all ranks, and its
wall and CPU seconds of the loop.
"""

from __future__ import annotations

import os
import sys
import time

import torch
from torch import distributed as dist, nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from tests.bench.hand_written.network import Net, dataset


class Trainer:
    """Trains a part of each global batch."""

    def __init__(self, model: nn.Module, loader: DataLoader[object], device: torch.device) -> None:
        self.loader, self.device = loader, device
        self.model = DistributedDataParallel(
            model, device_ids=[device] if device.type == "cuda" else None
        )
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.criterion = nn.CrossEntropyLoss()
        self.done = 0

    def run_batch(self, source: torch.Tensor, targets: torch.Tensor) -> float:
        """Train one step; return its loss."""
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = self.criterion(output, targets)
        loss.backward()
        self.optimizer.step()
        self.done += 1
        return float(loss.item())

    def train(self, steps: int) -> None:
        """Train for a number of steps."""
        epoch = 0
        while self.done < steps:
            self.loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
            epoch += 1
            for source, targets in self.loader:
                self.run_batch(source.to(self.device), targets.to(self.device))
                if self.done == steps:
                    break


def main() -> None:
    """Join the process group and train."""
    batch, steps = int(sys.argv[1]), int(sys.argv[2])
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    data = dataset()
    loader = DataLoader(
        data,
        batch_size=batch // dist.get_world_size(),
        shuffle=False,
        sampler=DistributedSampler(data),
        drop_last=True,
    )
    trainer = Trainer(Net().to(device), loader, device)
    dist.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    trainer.train(steps)
    if dist.get_rank() == 0:
        print("samples", steps * batch, time.perf_counter() - wall, time.process_time() - cpu)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
