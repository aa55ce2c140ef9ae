"""The program and its options, those of nccl-tests with long names as well: starts the ranks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from hpc_train.jobs.collectives import COLLECTIVES, DTYPES, collective_name, parse_size
from hpc_train.trainer import WorkloadError
from hpc_train.trainer.collectives import SweepOptions
from hpc_train.trainer.spawn_ranks import run_ranks, world_size
from hpc_train.trainer.trainer_options import Parser, natural, positive

PROGRAM = "python -m hpc_train.trainer.collectives"
# iterations and warm-up: those of nccl-tests
SMALLEST, LARGEST, FACTOR, ITERATIONS, WARMUP = "1K", "64M", 4, 20, 5


def parse_options(arguments: Sequence[str] | None = None) -> SweepOptions:
    """Read the command line, `sys.argv` by default.

    Raises:
        SystemExit: 2, with one line on stderr: an option is unknown or out of range.
    """
    parser = Parser(
        prog=PROGRAM,
        description="Measure a collective of torch.distributed; print the table of nccl-tests.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("collective", type=_collective, help=", ".join(COLLECTIVES))
    add("-b", "--smallest", type=_size, default=SMALLEST, metavar="SIZE", help="8, 64K, 16M, 1G")
    add("-e", "--largest", type=_size, default=LARGEST, metavar="SIZE")
    add("-f", "--factor", type=positive, default=FACTOR, help="from one size to the next")
    add("-n", "--iterations", type=positive, default=ITERATIONS, help="timed, of each size")
    add("-w", "--warmup", type=natural, default=WARMUP, help="untimed, of both extreme sizes")
    add("-d", "--dtype", choices=tuple(DTYPES), default="float")
    add("-r", "--root", type=natural, default=0, help="sending rank of broadcast")
    add("--no-check", dest="check", action="store_false", help="do not compare the results")
    add("--backend", choices=("auto", "gloo", "nccl", "mpi"), default="auto")
    add("--device", choices=("auto", "cuda", "cpu"), default="auto")
    options = SweepOptions(**vars(parser.parse_args(arguments)))
    if options.smallest > options.largest:
        parser.error(
            f"--smallest is {options.smallest} B, more than --largest, {options.largest} B"
        )
    return options


def _collective(text: str) -> str:
    name = collective_name(text)
    if name is None:
        known = ", ".join(COLLECTIVES)
        raise argparse.ArgumentTypeError(f"{text!r} is not a collective; known: {known}")
    return name


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as failure:
        raise argparse.ArgumentTypeError(str(failure)) from None


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
    from hpc_train.trainer.collectives.sweep import sweep
    from hpc_train.trainer.process_group import joined

    try:
        with joined(options.backend, options.device) as group:
            return sweep(options, group)
    except WorkloadError as error:
        return _refuse(error)


def _refuse(error: WorkloadError) -> int:
    print(f"{PROGRAM}: error: {error}", file=sys.stderr)
    return 2
