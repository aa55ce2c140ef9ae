"""The program: reads options, starts the ranks of this node if needed, and measures."""

from __future__ import annotations

import sys
from functools import partial

from hpc_train.workload import WorkloadError
from hpc_train.workload.collectives.sweep_options import (
    PROGRAM,
    SweepOptions,
    parse_options,
)
from hpc_train.workload.spawn_ranks import run_ranks, world_size


def main() -> int:
    """Run the benchmark on every rank that the environment describes; return the exit code.

    0 is success, 1 a wrong result, 2 an invalid option or environment.
    """
    options = parse_options()
    try:
        ranks = world_size()
        if ranks < 2:
            raise WorkloadError(
                f"{options.collective} needs at least 2 ranks, and RANK and WORLD_SIZE describe "
                f"one: torchrun --nproc-per-node 2 -m {PROGRAM.rpartition(' ')[2]} "
                f"{options.collective}"
            )
        if options.root >= ranks:
            raise WorkloadError(f"--root {options.root}: the ranks are 0 to {ranks - 1}")
        return run_ranks(partial(benchmark, options))
    except WorkloadError as error:
        return _refuse(error)


def benchmark(options: SweepOptions) -> int:
    """Run the benchmark as one rank; return its exit code."""
    # A process that only starts ranks does not need torch.
    from hpc_train.workload.collectives.sweep import sweep
    from hpc_train.workload.process_group import joined

    try:
        with joined(options.backend, options.device) as group:
            return sweep(options, group)
    except WorkloadError as error:
        return _refuse(error)


def _refuse(error: WorkloadError) -> int:
    print(f"{PROGRAM}: error: {error}", file=sys.stderr)
    return 2
