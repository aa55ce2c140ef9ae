"""1,000 run folders: `report` as text and as page, beside comparisons of 1,000 stored cases.

Goals: text in 2.5 times the CPU seconds of `reframe_intervals.py`, which takes ReFrame's stored
cases and computes intervals, and in 1.5 times those of ReFrame's own comparison, which has none;
the page in 2.5 times those of the text. The logs of the runs have been read before.
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

from tests.bench.bench_report import FOLDER as STORED
from tests.bench.bench_report import compare_command, reframe
from tests.bench.whole_process import ROOT, Used, main, used
from tests.pipeline.runs_of import written

FOLDER = ROOT / "build/bench/folders"
RUNS, STEPS = 1000, 20
REFERENCE = ROOT / "tests/bench/reframe_intervals.py"
_START = '@hpct {{"v":1,"event":"start","rank":0,"world_size":{ranks},"global_batch_size":64}}\n'
_STEP = (
    '@hpct {{"v":1,"event":"step","rank":0,"epoch":1,"step":{step},"step_time":{seconds:.6f},'
    '"samples":64,"loss":{loss:.4f}}}\n'
)


def log(chance: random.Random, ranks: int) -> str:
    """Return the log of a run."""
    run = 0.15 * chance.uniform(1.0, 1.1) / ranks
    seconds = [run * chance.uniform(1, 1.02) for _ in range(STEPS)]
    steps = (
        _STEP.format(step=step, seconds=each, loss=9 - step / 10)
        for step, each in enumerate(seconds, start=1)
    )
    return _START.format(ranks=ranks) + "".join(steps)


def folders(runs: int) -> Path:
    """Write the run folders of ten sizes, unless they are there; return the folder of results."""
    results = FOLDER / str(runs)
    if not results.exists():
        chance, fresh = random.Random(1234), results.with_suffix(".new")
        home = fresh / "j"
        home.mkdir(parents=True)
        for number in range(runs):
            ranks = 1 + number % 10
            job = {"resources": {"tasks_per_node": ranks}}
            axes = {"resources.tasks_per_node": ranks}
            written(home, f"run-{number:04}", log(chance, ranks), job=job, axes=axes)
        fresh.rename(results)
    return results


def measured(runs: int, rounds: int) -> list[tuple[str, ...]]:
    """Run all in turns; return a row of each, with the median ratios of the rounds."""
    ours = [sys.executable, "-m", "hpc_train", "report", "j", "--results", str(folders(runs))]
    reframe(runs // 100)
    program, settings = compare_command(runs // 100)
    stored = settings["RFM_SQLITE_DB_FILE"]
    sides = {
        "ReFrame's cases, means and intervals": [sys.executable, str(REFERENCE), stored],
        "ReFrame's comparison": ["env", *(f"{k}={v}" for k, v in settings.items()), *program],
        f"report of {runs} run folders": ours,
        "the page of them": [*ours, "-f", "html"],
    }
    for command in sides.values():
        used(command)
    turns = [[used(command) for command in sides.values()] for _ in range(rounds)]

    def ratio(one: int, other: int) -> float:
        return statistics.median(turn[one].cpu / turn[other].cpu for turn in turns)

    goals = (
        "1", "1",
        f"{ratio(2, 0):.2f} (goal 2.5); {ratio(2, 1):.2f} to ReFrame (goal 1.5)",
        f"{ratio(3, 2):.2f} to the text (goal 2.5)",
    )  # fmt: skip
    return [
        (name, *_cells(own), goal)
        for name, own, goal in zip(sides, zip(*turns, strict=True), goals, strict=True)
    ]


def _cells(own: tuple[Used, ...]) -> tuple[str, ...]:
    least = (min(one.cpu for one in own), min(one.wall for one in own))
    return (*(f"{value:.2f}" for value in least), f"{max(one.mib for one in own):.0f}")


def measure(quick: bool) -> tuple[str, list[tuple[str, ...]]]:
    """Return what is measured, and its rows."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    STORED.mkdir(parents=True, exist_ok=True)
    rows = measured(RUNS // 10 if quick else RUNS, 2 if quick else 3)
    return f"Run folders with logs of {STEPS} steps", rows


if __name__ == "__main__":
    main("Run folders", __doc__ or "", measure)
