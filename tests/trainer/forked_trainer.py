"""Ranks of the trainer as forks of one process that has imported torch.

To import torch takes a rank three seconds of CPU time, and most trainings of the tests half a
second. Each rank is a process of its own, with the variables that a launcher sets.
"""

import atexit
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from tests.cli.preloaded import Preloaded
from tests.trainer.launching import environment, meeting_point, without_remark

LIBRARIES = (
    "torch", "torch._dynamo", "torch.distributed.checkpoint.state_dict", "torch.distributed.fsdp",
    "torch.distributed.optim", "torch.distributed.pipelining", "torch.utils.flop_counter",
)  # fmt: skip
Done = subprocess.CompletedProcess[str]


@cache
def with_torch() -> Preloaded:
    """Return the process that all tests of this one share; it ends with it."""
    process = Preloaded("hpc_train.trainer.train", LIBRARIES, OMP_NUM_THREADS="1")
    atexit.register(process.end)
    return process


def run(words: Sequence[str], **extra: object) -> Done:
    """Run one process of the trainer, in the environment of the tests and `extra`."""
    done = with_torch().run(words, environment(**extra))
    return Done(done.args, done.returncode, done.stdout, without_remark(done.stderr))


def train(*words: str, ranks: int = 2, **extra: object) -> list[Done]:
    """Train on some ranks of this machine; return what came of each."""
    size = {**meeting_point(), "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, **extra}
    # Before there are threads, of which each would start one.
    with_torch()

    with ThreadPoolExecutor(ranks) as pool:
        return list(
            pool.map(lambda rank: run(words, **size, RANK=rank, LOCAL_RANK=rank), range(ranks))
        )
