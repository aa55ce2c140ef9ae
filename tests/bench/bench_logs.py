"""Log reading: `collect` and `diagnose`; memory; ranks.

The log has four kinds of line: NCCL INFO, steps, epochs, errors. Goals: 1 GB in 3 s on one core,
2,000 rank files of 500 KB in 3 s, less than 200 MB of memory.
"""

import argparse
import json
import os
import platform
import random
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("build/bench/logs")
BLOCK = 20_000_000
RANKS, RANK_SIZE = 2000, 500_000
NOISE = (
    "node01:4242:4300 [0] NCCL INFO Channel 02/08 : 0 1 2 3 4 5 6 7",
    "node01:4242:4300 [1] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
    "node02:4242:4301 [3] NCCL INFO NET/IB : Using [0]mlx5:1/IB [1]mlx5_1:1/IB ; OOB ib0:10.0.0.3",
    "node02:4242:4301 [2] NCCL INFO Setting affinity for GPU 2 to ffff0000,00000000",
    "2026-01-01 00:00:10,932 - root - INFO - step of the data loader took longer than expected",
    "",
)
# What is timed runs in a process of its own: its memory is its own, and its imports do not count.
COLLECT = """
import json, resource, sys, time
from pathlib import Path
from hpc_train.logs.read_log import ParseStats
from hpc_train.logs.collect import logs_of, packs_in, wanted
look = wanted(sys.argv[2])
wall, cpu = time.perf_counter(), time.process_time()
logs = logs_of("bench", [Path(sys.argv[1])])
count = sum(len(pack) for pack in packs_in(logs, look, ParseStats()))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
    "records": count, "mib": used.ru_maxrss / 1024}))
"""
# Symptoms, endings, collectives and what NCCL says, in one pass.
DIAGNOSE = """
import json, resource, sys, time
from pathlib import Path
from hpc_train.diagnosis.diagnosis import JobEnd
from hpc_train.diagnosis.diagnose import diagnose_logs
from hpc_train.nccl.transport import transport_in
from hpc_train.nccl.transport import Tally
tally, wall, cpu = Tally(), time.perf_counter(), time.process_time()
found, _ = diagnose_logs([Path(sys.argv[1])], ["log"], JobEnd(), tally)
transport_in(tally)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
    "records": len(found.findings), "mib": used.ru_maxrss / 1024}))
"""


def line(chance: random.Random, number: int) -> str:
    """Return one line: 1 % are steps, 0.1 % epochs, 0.1 % errors."""
    kind = chance.random()
    if kind < 0.01:
        return (
            f'@hpct {{"v":1,"event":"step","rank":{number % 8},"epoch":1,"step":{number},'
            f'"step_time":{chance.uniform(0.1, 0.2):.6f},"samples":64,"loss":2.5}}'
        )
    if kind < 0.011:
        return f"Worker {number % 8} - Epoch [{number}/99999999], Loss: 0.1234, time: 12 seconds"
    if kind < 0.012:
        return f"[rank{number % 8}]: RuntimeError: NCCL error in: Work.cpp:{number}, system error"
    return chance.choice(NOISE)


def block() -> bytes:
    """Return the same lines every time."""
    lines: list[str] = []
    chance, size = random.Random(1234), 0
    while size < BLOCK:
        lines.append(line(chance, len(lines)) + "\n")
        size += len(lines[-1])
    return "".join(lines).encode()


def generate(size: int, ranks: int) -> tuple[Path, Path]:
    """Write the log and the rank files, unless they are there, and read them once."""
    log, folder = FOLDER / f"log-{size}.out", FOLDER / f"ranks-{ranks}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    text = block()
    if not log.exists():
        with log.open("wb") as file:
            for _ in range(size // BLOCK):
                file.write(text)
    if not folder.exists():
        folder.mkdir()
        for rank in range(ranks):
            start = rank * 7919 % (len(text) - RANK_SIZE)
            (folder / f"rank-{rank}.out").write_bytes(text[start : start + RANK_SIZE])
    for path in (log, *folder.iterdir()):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
    return log, folder


def measured(*script: str) -> dict[str, float]:
    """Run a script with its arguments in a fresh process; return what it says of itself."""
    command = [sys.executable, "-c", *script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def rows(log: Path, folder: Path, rounds: int) -> list[tuple[str, str, str, str]]:
    """Measure everything in turns, so that other load hits all alike; keep the best."""
    files = list(folder.iterdir())
    scripts = {
        "collect": (COLLECT, str(log), "auto"),
        "collect, one format": (COLLECT, str(log), "events"),
        "diagnose, with NCCL": (DIAGNOSE, str(log)),
        f"collect {len(files)} rank files, two processes": (COLLECT, str(folder), "auto"),
    }
    turns = [{name: measured(*script) for name, script in scripts.items()} for _ in range(rounds)]
    found = []
    for name in scripts:
        size = sum(one.stat().st_size for one in ([log] if "rank" not in name else files)) / 1e6
        best, cpu = (min(turn[name][clock] for turn in turns) for clock in ("wall", "cpu"))
        found.append((name, f"{best:.2f} s", f"{size / best:.0f} MB/s", f"CPU {cpu:.2f} s"))
    peak = max(one["mib"] for turn in turns for one in turn.values())
    return [*found, ("peak memory", f"{peak:.0f} MiB", "", "at most 200 MB")]


def machine() -> str:
    """Return what measured, and how busy it was."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    name = model[1] if model else platform.machine()
    load = os.getloadavg()[0]
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth, to see whether it works")
    parser.add_argument("-o", "--output", type=Path, help="write Markdown to this file, too")
    options = parser.parse_args()
    size, ranks = (100_000_000, 200) if options.quick else (1_000_000_000, RANKS)
    before = machine()
    found = rows(*generate(size, ranks), 2 if options.quick else 3)
    cells = [("what", "takes", "rate", "remark"), ("---",) * 4, *found]
    text = "\n".join(f"| {' | '.join(row)} |" for row in cells)
    about = f"{size / 1e9:g} GB, page cache warm; {before}. Best of the rounds."
    text = f"# Reading logs\n\n{about}\n\n{text}\n"
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
