"""`advise --program` for 7 billion parameters on 1,024 ranks, beside the import of torch alone.

Goal: 10 CPU seconds more than the import, and no more memory than a few hundred MiB. The ranks are
not instantiated: shares of a rank are formulas of the counts of one model. Both commands run in
turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from tests.bench.whole_process import used

GOAL_S = 10.0
RANKS = (8, 1024)
JOB = "name: own\ncommand: [python, train.py]\nresources: {nodes: 1, gpus_per_node: 4, time: 5m}\n"
PROGRAM = "tests.bench.seven_billion:make_model"


def main() -> None:
    """Print the CPU seconds and the peak memory of each command, and what counting adds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job.yaml")
        job.write_text(JOB, encoding="utf-8")
        sides = {"import torch": [sys.executable, "-c", "import torch"]}
        sides |= {f"{ranks} ranks": advise(job, ranks) for ranks in RANKS}
        turns = [[used(command) for command in sides.values()] for _ in range(rounds)]
    for name, column in zip(sides, zip(*turns, strict=True), strict=True):
        cpu, wall, mib = (statistics.median(values) for values in zip(*column, strict=True))
        print(f"{name:14} {cpu:6.2f} CPU s {wall:6.2f} s {mib:6.0f} MiB")
    added = statistics.median(turn[-1].cpu - turn[0].cpu for turn in turns)
    print(f"{RANKS[-1]:,} ranks - import torch: {added:.1f} CPU s, goal {GOAL_S:g}")


def advise(job: Path, ranks: int) -> list[str]:
    """Return the command for a size."""
    asked = ["--gpus", str(ranks), "--condition", "global_batch=1024", "--program", PROGRAM]
    command = [sys.executable, "-m", "hpc_train", "advise", str(job), "--site", "perlmutter"]
    return [*command, "--results", str(job.parent), *asked]


if __name__ == "__main__":
    main()
