"""A plain DDP script, such as a user has: nothing of hpctrain in it, and lines to read as results.

hpctrain submit examples/book/train.py --tasks-per-node 2 -- --epochs 3
"""

import argparse
import os
import sys
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANK = int(os.environ.get("RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))


def make_data(samples: int, seed: int) -> TensorDataset:
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (samples,), generator=random)
    patterns = torch.randn(10, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    return TensorDataset(
        patterns[labels] + torch.randn(samples, 3, 16, 16, generator=random), labels
    )


def make_model() -> nn.Module:
    convolution = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4))
    return nn.Sequential(convolution, nn.Flatten(), nn.Linear(256, 10))


def train(model: nn.Module, epochs: int, batch_size: int, device: torch.device) -> None:
    samples = make_data(4096, seed=1)
    sampler = DistributedSampler(samples, num_replicas=WORLD_SIZE, rank=RANK)
    loader = DataLoader(samples, batch_size=batch_size, sampler=sampler)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    started = time.perf_counter()
    for epoch in range(1, epochs + 1):
        sampler.set_epoch(epoch)
        epoch_started = time.perf_counter()
        for images, labels in loader:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            loss.backward()
            optimiser.step()
        # The book prints whole seconds, of which a small epoch takes none.
        seconds = time.perf_counter() - epoch_started
        progress = f"Epoch [{epoch}/{epochs}], Loss: {loss.item():.4f}, time: {seconds:.2f} seconds"
        print(f"Worker {RANK} - {progress}", flush=True)
    print(f"Training time: {time.perf_counter() - started:.2f} seconds", flush=True)


@torch.no_grad()
def test(model: nn.Module, device: torch.device) -> None:
    images, labels = make_data(1000, seed=2).tensors
    percent = 100 * (model(images.to(device)).argmax(dim=1).cpu() == labels).float().mean().item()
    print(f"Accuracy of the network on the {len(labels)} test images: {percent:.2f} %", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    options = parser.parse_args()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", LOCAL_RANK) if cuda else torch.device("cpu")
    torch.manual_seed(0)
    model = make_model().to(device)
    if "RANK" in os.environ:
        distributed.init_process_group("nccl" if cuda else "gloo")
    wrapped = DistributedDataParallel(model) if distributed.is_initialized() else model
    train(wrapped, options.epochs, options.batch_size, device)
    if RANK == 0:
        test(model, device)
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # With gloo, torch 2.13 aborts about one process in fifty (code 134) in the interpreter's
    # clean-up, after all its work.
    os._exit(0)
