"""plain.py, restartable: it goes on where it was when its job is stopped, preempted or killed.

hpctrain submit examples/restart/job.yaml
"""

import os
import sys
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from hpc_train.trainer import checkpoint


def make_data() -> TensorDataset:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(2048, 16, generator=random)
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True).sin())


def make_loader(data: TensorDataset) -> tuple[DataLoader[Any], DistributedSampler[int]]:
    sampler: DistributedSampler[int] = DistributedSampler(data)
    loader = DataLoader(
        data,
        batch_size=32,
        sampler=sampler,
        num_workers=1,
        generator=torch.Generator(),  # else an epoch that begins again draws from that of dropout
        worker_init_fn=checkpoint.keep_worker,
    )
    return loader, sampler


def resume(model: nn.Module, optimizer: torch.optim.Optimizer, own: dict[str, Any]) -> int:
    done = checkpoint.resume(model, optimizer, own)
    if done and not own:
        sys.exit("start it with as many ranks as before: with others, an epoch has other steps")
    return done


def main(epochs: int) -> int:
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
    own: dict[str, Any] = {}
    done = resume(model, optimizer, own)
    scheduler.load_state_dict(own.get("scheduler", scheduler.state_dict()))
    total = own.get("total", 0.0)
    for epoch in range(done // len(loader), epochs):
        sampler.set_epoch(epoch)
        for batch, (inputs, targets) in enumerate(loader):
            step = epoch * len(loader) + batch + 1
            if step <= done:
                continue  # it was trained before the job was queued again
            loss = nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            if batch == len(loader) - 1:
                scheduler.step()
                if rank == 0:
                    print(f"epoch {epoch}: loss {total / len(loader):.6f}", flush=True)
                total = 0.0
            stop = checkpoint.should_stop()
            if stop or batch == len(loader) - 1:
                save = checkpoint.save if stop else checkpoint.async_save
                save(step, model, optimizer, {"scheduler": scheduler.state_dict(), "total": total})
            if stop:
                return checkpoint.RESUBMIT
    checkpoint.finish()
    if rank == 0:
        torch.save(net.state_dict(), "model.pt")
    distributed.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
