"""Log parsing: MB/s of `collect`, beside `LC_ALL=C grep -c` for one of its literals, and memory.

The goal is 1 GB with four kinds of line in 3 s on one core, 333 MB/s, with flat memory: what is
not a mapped page of the log must not grow with it, so a part of each log is measured as well.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from hpc_train.records.collect import collect

FOLDER = Path("build/bench/logs")
SIZE = 100_000_000
ROUNDS = 5
# Share of lines that hold an event; NCCL_DEBUG=INFO logs are sparse.
MIXES = {"sparse": 0.005, "dense": 0.10}
NOISE = (
    "node01:4242:4300 [0] NCCL INFO Channel 02/08 : 0 1 2 3 4 5 6 7",
    "node01:4242:4300 [1] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
    "node02:4242:4301 [3] NCCL INFO NET/IB : Using [0]mlx5:1/IB [1]mlx5_1:1/IB ; OOB ib0:10.0.0.3",
    "node02:4242:4301 [2] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA",
    "2026-01-01 00:00:10,932 - root - INFO - step of the data loader took longer than expected",
    "srun: Job 4711 step creation temporarily disabled, retrying (Requested nodes are busy)",
    "Größe des Pakets: 64 KiB, Schritt fertig",
    "",
)


def line(chance: random.Random, number: int, share: float) -> str:
    """Return one line of the mix."""
    if chance.random() < share:
        return (
            f'@hpct {{"v":1,"event":"step","rank":{number % 8},"epoch":1,"step":{number},'
            f'"step_time":{chance.uniform(0.1, 0.2):.6f},"samples":64,"loss":2.5}}'
        )
    if chance.random() < 0.01:
        return f"Worker {number % 8} - Epoch [{number}/99999999], Loss: 0.1234, time: 12 seconds"
    return chance.choice(NOISE)


def generate(name: str, share: float) -> Path:
    """Write the log of one mix, the same bytes every time, unless it is there."""
    path = FOLDER / f"{name}.out"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        chance = random.Random(1234)
        block = "\n".join(line(chance, number, share) for number in range(100_000)) + "\n"
        data = block.encode()
        path.write_bytes(data * (SIZE // len(data) + 1))
    return path


def anonymous_mib() -> float:
    """Return the memory of this process that is no page of a file; NaN where Linux is not."""
    status = Path("/proc/self/status")
    found = re.search(r"RssAnon:\s+(\d+) kB", status.read_text() if status.exists() else "")
    return int(found[1]) / 1024 if found else math.nan


def seconds_of_collect(path: Path) -> tuple[float, int]:
    started = time.process_time()
    count = sum(1 for _ in collect("bench", [path]))
    return time.process_time() - started, count


def peak_of_collect(path: Path) -> float:
    """Return the most memory in use, in a run of its own: looking costs time."""
    peak = anonymous_mib()
    for number, _ in enumerate(collect("bench", [path])):
        if number % 1000 == 0:
            peak = max(peak, anonymous_mib())
    return peak


def seconds_of_grep(path: Path) -> float:
    started = time.perf_counter()
    command = ["grep", "-c", "-F", "@hpct {", str(path)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    return time.perf_counter() - started


def tenth(path: Path) -> Path:
    """Write the first tenth of a log beside it: its peak shows whether memory is flat."""
    part = path.with_suffix(".tenth")
    shutil.copyfile(path, part)
    os.truncate(part, SIZE // 10)
    return part


def measure(name: str, path: Path) -> None:
    """Print one row: both programs take turns, so that other load hits them alike."""
    ours, greps, count = [], [], 0
    for _ in range(ROUNDS):
        spent, count = seconds_of_collect(path)
        ours.append(spent)
        greps.append(seconds_of_grep(path))
    size = path.stat().st_size / 1e6
    mine, grep = statistics.median(ours), statistics.median(greps)
    memory = f"{peak_of_collect(tenth(path)):9.1f} {peak_of_collect(path):9.1f}"
    rates = f"{size / mine:7.0f} {size / min(ours):7.0f} {size / grep:10.0f} {mine / grep:12.1f}x"
    print(f"{name:8} {size:5.0f} {count:9d} {rates} {memory}")


def main() -> None:
    print(f"log parsing: CPU seconds of this process; median and best of {ROUNDS}")
    print(
        "memory: peak MiB of this process without the mapped log, of a tenth of the log and of all"
    )
    rates = f"{'MB/s':>7} {'best':>7} {'grep MB/s':>10} {'collect/grep':>13}"
    print(f"{'mix':8} {'MB':>5} {'records':>9} {rates} {'MiB 10 %':>9} {'MiB all':>9}")
    for name, share in MIXES.items():
        measure(name, generate(name, share))


if __name__ == "__main__":
    main()
