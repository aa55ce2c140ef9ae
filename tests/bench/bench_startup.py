"""Start-up: `hpctrain` and two peers, as ratios to `python -c pass` of the same round.

Budgets: `--help` 5x, `render` 10x, `site list` over the shipped profiles 12x. The rounds are
interleaved, so that a slow minute of the machine hits every command alike.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "bench" / "torchx"
ROUNDS = 15

Command = list[str]


def hpctrain() -> Command:
    """Return the installed command, or the module where it is not installed."""
    installed = Path(sys.executable).with_name("hpctrain")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "hpc_train"]


def torchx() -> Command | None:
    """Install torchx beside the benchmark's other files; None, with a line why, if it fails."""
    program = PEERS / "bin" / "torchx"
    if not program.exists():
        print("installing torchx into", PEERS.relative_to(ROOT))
        venv.create(PEERS, with_pip=True)
        pip = [str(PEERS / "bin" / "python"), "-m", "pip", "install", "--quiet", "torchx"]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print("torchx is left out, it cannot be installed:", done.stderr.strip()[-300:])
            return None
    return [str(program), "--help"]


def seconds(command: Command) -> float | None:
    """Run a command once; None if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return time.perf_counter() - started if done.returncode == 0 else None


def commands() -> dict[str, tuple[Command, str]]:
    found = {
        "python -c pass": ([sys.executable, "-c", "pass"], ""),
        "hpctrain --help": ([*hpctrain(), "--help"], "5x"),
        "hpctrain render": ([*hpctrain(), "render", "examples/digits/job.yaml"], "10x"),
        "hpctrain site list": ([*hpctrain(), "site", "list"], "12x"),
        "import submitit": ([sys.executable, "-c", "import submitit"], ""),
    }
    peer = torchx()
    return {**found, "torchx --help": (peer, "")} if peer else found


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


if __name__ == "__main__":
    main()
