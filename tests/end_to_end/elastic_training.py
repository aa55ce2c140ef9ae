"""Ranks that count together until a folder has the file `enough`; after a loss, with fewer."""

import os
import sys
import time
from pathlib import Path

import torch
from torch import distributed

from hpc_train.trainer.emit import write_line
from hpc_train.trainer.process_group import any_rank
from hpc_train.trainer.spawn_ranks import leave


def main(folder: Path) -> None:
    """Say how many ranks there are, and count."""
    distributed.init_process_group("gloo")
    count = torch.ones(1)
    distributed.all_reduce(count)
    node = os.environ.get("SLURMD_NODENAME", "")
    write_line(f"rank {distributed.get_rank()} of {int(count)} on {node}, process {os.getpid()}")
    while not any_rank((folder / "enough").exists()):
        time.sleep(0.1)
    write_line("enough")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave(0)
