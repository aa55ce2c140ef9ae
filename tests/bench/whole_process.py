"""Commands -> what they cost, in turns: CPU seconds with their children's, wall time, memory."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# In a process of its own, so that its children are the command's alone.
_RUN = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
wall, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024]))
"""


class Used(NamedTuple):
    """CPU seconds (user and system), wall seconds, and the peak of the largest process [MiB]."""

    cpu: float
    wall: float
    mib: float


def used(command: Sequence[str], allowed: Sequence[int] = (0, 3)) -> Used:
    """Run a command; 3 is a partial result.

    Raises:
        RuntimeError: it ended with another exit code.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Installed packages have their bytecode.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    whole = [sys.executable, "-c", _RUN, *command]
    said = subprocess.run(whole, env=environment, capture_output=True, text=True, check=True)
    code, cpu, wall, mib = json.loads(said.stdout)
    if code not in allowed:
        raise RuntimeError(f"{' '.join(command)}: exit code {code}")
    return Used(cpu, wall, mib)


def compared(
    sides: Sequence[tuple[str, Sequence[str]]], rounds: int, goal: float
) -> list[tuple[str, ...]]:
    """Run two commands in turns; return a row of each, and the median ratio of CPU seconds.

    Of one round, both were under the same load: the ratio holds on a busy machine, too.
    """
    turns = [[used(command) for _, command in sides] for _ in range(rounds)]
    ratio = statistics.median(second.cpu / first.cpu for first, second in turns)
    shown = ("1", f"{ratio:.2f} (goal {goal:.1f})")
    return [
        (
            name,
            f"{min(one.cpu for one in own):.2f}",
            f"{min(one.wall for one in own):.2f}",
            f"{max(one.mib for one in own):.0f}",
            part,
        )
        for (name, _), own, part in zip(sides, zip(*turns, strict=True), shown, strict=True)
    ]


def main(
    title: str, about: str, measure: Callable[[bool], tuple[str, list[tuple[str, ...]]]]
) -> None:
    """Measure, print a page of it, and write that where `-o` says."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="a tenth, to see whether it works")
    parser.add_argument("-o", "--output", type=Path, help="write Markdown to this file, too")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    what, rows = measure(options.quick)
    heads = ("what", "CPU s", "wall s", "peak MiB", "ratio of CPU s")
    table = "\n".join(f"| {' | '.join(row)} |" for row in (heads, ("---",) * len(heads), *rows))
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}"
    text = f"# {title}\n\n{what}; {machine}. Whole processes, in turns.\n\n{table}\n"
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
