"""Sharded parameters, as in PyTorch's tutorial "Getting Started with Fully Sharded Data Parallel".

Arguments: the global batch and the number of steps. Rank 0 prints samples of all ranks, and its
wall and CPU seconds of the loop.
"""

from __future__ import annotations

import os
import sys
import time

import torch
from torch import distributed as dist, nn, optim
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler

from tests.bench.hand_written.network import Net, dataset


def sharded(model: Net) -> Net:
    """Shard each layer with parameters, then the model."""
    for layer in (model.conv1, model.conv2, model.conv3, model.fc):
        fully_shard(layer)
    fully_shard(model)
    return model


def train(model: nn.Module, loader: DataLoader[object], device: torch.device, steps: int) -> None:
    """Train for a number of steps; the optimiser is made from the shards."""
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    done = epoch = 0
    while done < steps:
        loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        epoch += 1
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
            done += 1
            if done == steps:
                break


def main() -> None:
    """Join the process group and train."""
    batch, steps = int(sys.argv[1]), int(sys.argv[2])
    cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = sharded(Net().to(device))
    data = dataset()
    loader = DataLoader(
        data,
        batch_size=batch // dist.get_world_size(),
        sampler=DistributedSampler(data),
        drop_last=True,
    )
    dist.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    train(model, loader, device, steps)
    if dist.get_rank() == 0:
        print("samples", steps * batch, time.perf_counter() - wall, time.process_time() - cpu)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
