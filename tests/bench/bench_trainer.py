"""The reference trainer beside scripts as the tutorials of PyTorch write them (`hand_written`).

The same CNN, batch and optimiser on one thread for each rank, in turns. Goal: 0.97 of the
throughput. On a busy machine look at the ratio of CPU seconds: other work hardly changes it.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import torch

ROOT = Path(__file__).resolve().parents[2]
GOAL, BATCH = 0.97, 64
RANKS = {"single": 1, "ddp": 2, "fsdp": 2}


class Rate(NamedTuple):
    """Samples per second of wall time, and per second of CPU time of one rank."""

    wall: float
    cpu: float


def command(strategy: str, *, own: bool, steps: int) -> list[str]:
    """Return the command of the reference trainer, or of the script."""
    words = [strategy, str(BATCH), str(steps)]
    if own:
        words = ["reference", "--global-batch-size", str(BATCH), "--steps", str(steps)]
        words += ["--strategy", strategy]
        words += ["--data", "synthetic", "--width", "16", "--no-accuracy"]
    start = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS[strategy]}"]
    return [
        sys.executable,
        *(start if RANKS[strategy] > 1 else []),
        "-m",
        "tests.bench.hand_written",
        *words,
    ]


def rate(strategy: str, *, own: bool, steps: int) -> Rate:
    """Run it; return its speed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    words = command(strategy, own=own, steps=steps)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("samples "))
    samples, wall, cpu = map(float, line.split()[1:])
    return Rate(samples / wall, samples / cpu)


def row(strategy: str, rounds: int, steps: int) -> tuple[str, ...]:
    """Return the row of a strategy: medians, and the medians of the ratios of each round."""
    turns = []
    for number in range(rounds):
        order = (True, False) if number % 2 else (False, True)
        found = {own: rate(strategy, own=own, steps=steps) for own in order}
        turns.append((found[True], found[False]))
    wall, cpu = (
        statistics.median(getattr(ours, name) / getattr(theirs, name) for ours, theirs in turns)
        for name in ("wall", "cpu")
    )
    sides = [statistics.median(one.wall for one in side) for side in zip(*turns, strict=True)]
    return (strategy, *(f"{side:.0f}" for side in sides), f"{wall:.3f}", f"{cpu:.3f}", f"{GOAL}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("strategies", nargs="*", default=list(RANKS), metavar="STRATEGY")
    options = parser.parse_args()
    heads = ("strategy", "hpctrain [samples/s]", "by hand", "ratio", "of CPU", "goal")
    before = os.getloadavg()[0]
    rows = [row(name, options.rounds, options.steps) for name in options.strategies]
    load = f"load {before:.1f} to {os.getloadavg()[0]:.1f}"
    machine = f"{os.cpu_count()} cores, torch {torch.__version__}"
    print(f"{__doc__}\n{machine}, {load}, n={options.rounds}\n")
    for cells in (heads, ("---",) * len(heads), *rows):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
