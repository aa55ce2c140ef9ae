"""Start-up: `hpctrain`, as ratios to `python -c pass` of the same round.

Budgets: `--help` 4.5x, `render` 11x, `site list` over the shipped profiles 12x. The rounds are
interleaved, so that a slow minute of the machine hits every command alike. Then, where strace is
installed, the calls that a parallel file system answers: stat and open, also of what is not there.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 15
CALL = re.compile(r"\b(?:stat|lstat|fstat|newfstatat|statx|open|openat)\(")
# Arguments -> the most stat and open calls.
GOALS = {
    "--help": 450,
    # The four libraries alone: 1,226.
    "render examples/digits/job.yaml": 2000,
    "report results/studies/digits-two-cores": 5000,
}

Command = list[str]


def hpctrain() -> Command:
    """Return the installed command, or the module where it is not installed."""
    installed = Path(sys.executable).with_name("hpctrain")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "hpc_train"]


def environment() -> dict[str, str]:
    """Return the environment of a user: Python and Jinja keep what they compile."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def seconds(command: Command) -> float | None:
    """Run a command once; None if it fails."""
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=False)
    return time.perf_counter() - started if done.returncode == 0 else None


def commands() -> dict[str, tuple[Command, str]]:
    return {
        "python -c pass": ([sys.executable, "-c", "pass"], ""),
        "hpctrain --help": ([*hpctrain(), "--help"], "4.5x"),
        "hpctrain render": ([*hpctrain(), "render", "examples/digits/job.yaml"], "11x"),
        "hpctrain site list": ([*hpctrain(), "site", "list"], "12x"),
    }


def calls(command: Command) -> int:
    """Count the stat and open calls of a command and its children."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as trace:
        traced = ["strace", "-f", "-e", "trace=%file,fstat", "-o", trace.name, *command]
        subprocess.run(traced, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, check=True)
        return sum(bool(CALL.search(line)) for line in trace)


def count() -> None:
    """Print the calls of each command, from a filled bytecode cache."""
    if shutil.which("strace") is None:
        print("stat and open calls are left out: strace is not installed")
        return
    for words in GOALS:
        # Fills the bytecode cache.
        calls([*hpctrain(), *words.split()])
    base = calls([sys.executable, "-c", "pass"])
    print(f"{'stat and open calls':19} {'calls':>6} {'ratio':>7} {'goal':>6}")
    for words, goal in GOALS.items():
        found = calls([*hpctrain(), *words.split()])
        print(f"{words.split()[0]:19} {found:6} {found / base:6.1f}x {goal:6}")
    print(f"{'python -c pass':19} {base:6}")


def main() -> None:
    table = commands()
    times: dict[str, list[float | None]] = {name: [] for name in table}
    for _ in range(ROUNDS + 1):
        for name, (command, _budget) in table.items():
            times[name].append(seconds(command))
    # The first round fills the file cache.
    kept = {name: [t for t in found[1:] if t is not None] for name, found in times.items()}
    base = kept["python -c pass"]
    print(f"start-up: median of {ROUNDS} interleaved rounds")
    print(f"{'command':18} {'ms':>7} {'ratio':>7} {'budget':>7}")
    for name, (_command, budget) in table.items():
        if len(kept[name]) < ROUNDS:
            print(f"{name:18} failed in {ROUNDS - len(kept[name])} of {ROUNDS} rounds")
            continue
        ratio = statistics.median(t / b for t, b in zip(kept[name], base, strict=True))
        print(f"{name:18} {statistics.median(kept[name]) * 1e3:7.1f} {ratio:6.1f}x {budget:>7}")
    count()


if __name__ == "__main__":
    main()
