"""One process, as in PyTorch's tutorial "Training a Classifier".

Arguments: the batch and the number of steps. Prints samples, wall and CPU seconds of the loop.
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn, optim
from torch.utils.data import DataLoader

from tests.bench.hand_written.network import Net, dataset


def main() -> None:
    """Train."""
    batch, steps = int(sys.argv[1]), int(sys.argv[2])
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(dataset(), batch_size=batch, shuffle=True, drop_last=True)
    net = Net().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    wall, cpu, done = time.perf_counter(), time.process_time(), 0
    while done < steps:
        running_loss = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            outputs = net(inputs.to(device))
            loss = criterion(outputs, labels.to(device))
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            done += 1
            if done == steps:
                break
    print("samples", done * batch, time.perf_counter() - wall, time.process_time() - cpu)


if __name__ == "__main__":
    main()
