"""Tables of other programs: `report` of 10^5 and 10^6 jobs beside twenty lines of pandas.

Each row is a job: eight columns, three of them texts. `few` has 42 points, `many` one for each
hundred rows. Goals: 10^5 rows in 3 times the CPU seconds of `pandas_means.py`, 10^6 rows in 5 times
and with 4 times its memory.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tests.bench.whole_process import ROOT, Used, main, used

FOLDER = ROOT / "build/bench/tables"
REFERENCE = ROOT / "tests/bench/pandas_means.py"
SIZES = 2 ** np.arange(8)
EACH = 100
TIMES, MEMORY = {100_000: 3.0, 1_000_000: 5.0}, {100_000: 4.0, 1_000_000: 4.0}


def table(path: Path, rows: int, *, many: bool) -> None:
    """Write a table of jobs; the same always."""
    chance = np.random.default_rng(1234)
    nodes = SIZES[chance.integers(0, len(SIZES) - (0 if many else 1), rows)]
    rate = 900 * nodes**0.95 * chance.normal(1, 0.02, rows)
    seconds = np.arange(rows).astype("timedelta64[s]")
    columns = {
        "nodes": nodes,
        "gpus_per_node": 4,
        "global_batch_size": 256 * nodes,
        "samples_per_second": rate,
        "site": np.array(["juwels", "lumi"])[chance.integers(0, 2, rows)],
        "launcher": np.array(["srun", "torchrun", "mpirun"])[chance.integers(0, 3, rows)],
        "date": np.datetime_as_string(np.datetime64("2026-01-01T00:00:00") + seconds),
        "job_id": 1_000_000 + np.arange(rows),
    }
    if many:
        kinds = rows // (EACH * len(SIZES) * 6)
        columns["variant"] = [f"v{kind}" for kind in chance.integers(0, kinds, rows)]
        del columns["job_id"]
    pd.DataFrame(columns).to_csv(path, index=False)


def measured(rows: int, *, many: bool, rounds: int) -> list[tuple[str, ...]]:
    """Run both in turns; return a row of each, with the median ratios of the rounds."""
    kind = "many" if many else "few"
    path = FOLDER / f"{kind}-{rows}.csv"
    if not path.exists():
        table(path, rows, many=many)
    sides = {
        f"pandas, {rows} rows, {kind} points": [sys.executable, str(REFERENCE), str(path)],
        "hpctrain report": [sys.executable, "-m", "hpc_train", "report", str(path)],
    }
    turns = [[used(command) for command in sides.values()] for _ in range(rounds)]
    cpu, mib = (
        statistics.median(getattr(ours, name) / getattr(other, name) for other, ours in turns)
        for name in ("cpu", "mib")
    )
    goals = f"{cpu:.2f} (goal {TIMES[rows]:g}); memory {mib:.2f} (goal {MEMORY[rows]:g})"
    return [
        (name, *_cells(own), ratio)
        for name, own, ratio in zip(sides, zip(*turns, strict=True), ("1", goals), strict=True)
    ]


def _cells(own: tuple[Used, ...]) -> tuple[str, ...]:
    least = (min(one.cpu for one in own), min(one.wall for one in own))
    return (*(f"{value:.2f}" for value in least), f"{max(one.mib for one in own):.0f}")


def measure(quick: bool) -> tuple[str, list[tuple[str, ...]]]:
    """Return what is measured, and its rows."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    sizes, rounds = ((100_000,), 2) if quick else ((100_000, 1_000_000), 3)
    rows = [
        row
        for n in sizes
        for many in (False, True)
        for row in measured(n, many=many, rounds=rounds)
    ]
    return "`hpctrain report TABLE.csv` beside `pandas_means.py`", rows


if __name__ == "__main__":
    main("Tables of jobs", __doc__ or "", measure)
