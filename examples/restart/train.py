"""A plain DDP training that survives the time limit of its job: five lines are of checkpoints.

hpctrain submit examples/restart/job.yaml
"""

import os
import sys

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from hpc_train.workload import checkpoint

EPOCHS = 4


def make_data() -> TensorDataset:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(2048, 16, generator=random)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True).sin())


def main() -> int:
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = make_data()
    sampler: DistributedSampler[int] = DistributedSampler(data)
    loader = DataLoader(data, batch_size=32, sampler=sampler)

    done = checkpoint.resume(model, optimizer)
    for epoch in range(done // len(loader), EPOCHS):
        sampler.set_epoch(epoch)
        for batch, (inputs, targets) in enumerate(loader):
            step = epoch * len(loader) + batch + 1
            if step <= done:
                continue  # it was trained before the job was queued again
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item():.6f}", flush=True)
            if checkpoint.should_stop():
                checkpoint.save(step, model, optimizer)
                return checkpoint.RESUBMIT
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # torch with gloo aborts some processes in the interpreter's clean-up, after all their work.
    os._exit(code)
