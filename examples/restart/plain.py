"""A DDP training as tutorials have it, from beginning to end; train.py is the same, restartable."""

import os
import sys
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_data() -> TensorDataset:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(2048, 16, generator=random)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True).sin())


def make_loader(data: TensorDataset) -> tuple[DataLoader[Any], DistributedSampler[int]]:
    sampler: DistributedSampler[int] = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler, num_workers=1)
    return loader, sampler


def main(epochs: int) -> None:
    device = torch.device("cpu")
    if torch.cuda.is_available():
        local = int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank = distributed.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1))
    model = DistributedDataParallel(net.to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.9)
    loader, sampler = make_loader(make_data())

    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = 0.0
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        if rank == 0:
            print(f"epoch {epoch}: loss {total / len(loader):.6f}", flush=True)
    if rank == 0:
        torch.save(net.state_dict(), "model.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
