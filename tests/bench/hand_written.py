"""Trainings as the tutorials of PyTorch write them, to compare the reference trainer with.

Arguments: the strategy, the global batch and the number of steps. `single` is "Training a
Classifier", `ddp` "Multinode Training" (DDP with torchrun), `fsdp` "Getting Started with Fully
Sharded Data Parallel". Rank 0 prints samples of all ranks, and its wall and CPU seconds of the
loop. `reference` is the reference trainer with its own arguments, and prints the same.
"""

import os
import sys
import time

import torch
from torch import Tensor, distributed as dist, nn, optim
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from hpc_train.trainer import train as reference
from hpc_train.trainer.strategies.base import ParallelModel
from hpc_train.trainer.training_loop import Trainer, TrainingResult

WIDTH, SAMPLES = 16, 4096
RANK = int(os.environ.get("RANK", "0"))
_train = Trainer.train


class Net(nn.Module):
    """Three convolutions and a classifier of images (n, 3, 32, 32): the CNN of the trainer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTH, 3, padding=1)
        self.conv2 = nn.Conv2d(WIDTH, 2 * WIDTH, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(2 * WIDTH, 2 * WIDTH, 3, padding=1)
        self.average = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(8 * WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (n, 10)."""
        x = torch.relu(self.conv1(x))
        x = self.pool(torch.relu(self.conv2(x)))
        x = self.average(torch.relu(self.conv3(x)))
        logits: Tensor = self.fc(torch.flatten(x, 1))
        return logits


def parallel(strategy: str, net: Net, device: torch.device) -> nn.Module:
    """Return the model of a rank."""
    if strategy == "ddp":
        ids = [device] if device.type == "cuda" else None
        return DistributedDataParallel(net, device_ids=ids)
    if strategy == "fsdp":
        for layer in (net.conv1, net.conv2, net.conv3, net.fc):
            fully_shard(layer)
        fully_shard(net)
    return net


def train(model: nn.Module, loader: DataLoader[object], device: torch.device, steps: int) -> None:
    """Train for a number of steps; the optimiser of `fsdp` is made from the shards."""
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    done = epoch = 0
    while done < steps:
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        epoch += 1
        total = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.item()
            done += 1
            if done == steps:
                break


def by_hand(strategy: str, batch: int, steps: int) -> None:
    """Join the process group, if there is one, and train."""
    cuda, single = torch.cuda.is_available(), strategy == "single"
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if not single:
        dist.init_process_group("nccl" if cuda else "gloo")
    if cuda:
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    images, labels = torch.rand(SAMPLES, 3, 32, 32) - 0.5, torch.randint(10, (SAMPLES,))
    data = TensorDataset(images, labels)
    sampler: DistributedSampler[object] | None = None if single else DistributedSampler(data)
    size = batch if single else batch // dist.get_world_size()
    loader = DataLoader(data, size, shuffle=single, sampler=sampler, drop_last=True)
    model = parallel(strategy, Net().to(device), device)
    if not single:
        dist.barrier()
    wall, cpu = time.perf_counter(), time.process_time()
    train(model, loader, device, steps)
    if RANK == 0:
        print("samples", steps * batch, time.perf_counter() - wall, time.process_time() - cpu)
    if not single:
        dist.destroy_process_group()


def timed(self: Trainer, model: ParallelModel) -> TrainingResult:
    """Train; print samples, wall and CPU seconds of the loop."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = _train(self, model)
    if RANK == 0:
        print("samples", result.samples, time.perf_counter() - wall, time.process_time() - cpu)
    return result


if __name__ == "__main__":
    if sys.argv[1] == "reference":
        del sys.argv[1]
        Trainer.train = timed  # type: ignore[method-assign]
        raise SystemExit(reference.main())
    by_hand(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
