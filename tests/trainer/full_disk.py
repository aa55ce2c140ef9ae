"""Two ranks save into $HPCTRAIN_CHECKPOINTS; rank 1 may write no file longer than 1 kB there.

A limit stands for a full disk: the write of one rank fails, and all ranks must hear of it.
"""

import resource
import signal
import sys

import torch
from torch import distributed, nn

from hpc_train.trainer import checkpoint
from hpc_train.trainer.spawn_ranks import leave


def main() -> int:
    """Save twice, the second time with the limit; return 0 if the error is as documented."""
    distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 64)).sum().backward()
    optimizer.step()
    checkpoint.save(1, model, optimizer)
    if distributed.get_rank() == 1:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    try:
        checkpoint.save(2, model, optimizer)
    except checkpoint.CheckpointError as error:
        sys.stdout.write(f"{error}\n")
        return int(checkpoint.resume(model, optimizer) != 1)
    return 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    leave(code)
