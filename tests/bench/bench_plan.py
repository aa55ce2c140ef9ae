"""Planning and rendering of 250, 500 and 1000 runs; the time per run should stay the same."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench" / "plan"
SIZES = (1, 250, 500, 1000)
ROUNDS = 5
STUDY = """\
name: many
scaling: strong
repetitions: 1
axes: {{nodes: [1], env.TRIAL: [{trials}]}}
job:
  command: [python, train.py]
  launcher: torchrun
  resources: {{tasks_per_node: 2, cpus_per_task: 1, time: 1h}}
"""


def write_study(runs: int) -> Path:
    """Write a study of so many points."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"study-{runs}.yaml"
    path.write_text(STUDY.format(trials=", ".join(map(str, range(runs)))), encoding="utf-8")
    return path


def render_study(path: Path, site: str | None) -> None:
    """Render every script of a study, as `hpctrain render` does."""
    command = [sys.executable, "-m", "hpc_train", "render", str(path)]
    command += ["--site", site] if site else []
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=FOLDER, env=environment, check=True, stdout=subprocess.DEVNULL)


def seconds(runs: int) -> float:
    path = write_study(runs)
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        render_study(path, "local")
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    found = {runs: seconds(runs) for runs in SIZES}
    print(f"planning and rendering: median of {ROUNDS}; ms/run is above the time of one run")
    print(f"{'runs':>5} {'s':>7} {'ms/run':>8} {'ratio':>6}")
    cost = {runs: (found[runs] - found[1]) / runs for runs in SIZES[1:]}
    print(f"{1:5} {found[1]:7.3f}")
    for runs, each in cost.items():
        print(f"{runs:5} {found[runs]:7.3f} {each * 1e3:8.3f} {each / cost[SIZES[1]]:5.2f}x")


if __name__ == "__main__":
    main()
