"""Reports: 10,000 runs of 100 records as table, JSON and page, beside ReFrame's comparison.

Goals: table and JSON 3 s, page 10 s and 5 MB, less than 1 GB of memory. ReFrame 4.10.4 is put into
an environment of its own, runs 100 cases, and compares 10,000 stored ones: the same, 100 times.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from tests.bench.bench_logs import machine

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path("build/bench/report").absolute()
REFRAME = "reframe-hpc==4.10.4"
SIZES = tuple(2**k for k in range(10))
STEPS = 48
CASES = 100
CHECK = """
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class Scale(rfm.RunOnlyRegressionTest):
    index = parameter(range(100))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo samples_per_second=100"

    @sanity_function
    def ran(self):
        return sn.assert_found("samples", self.stdout)

    @performance_function("1/s")
    def samples_per_second(self):
        return sn.extractsingle(r"samples_per_second=(\\S+)", self.stdout, 1, float)
"""
DAY = 86400.0


class Cost(NamedTuple):
    """What a process took: seconds, MiB at its peak, and bytes of what it wrote."""

    seconds: float
    mib: float
    size: int


def records(path: Path, runs: int) -> None:
    """Write the records of so many runs, each of 100, half of them step times; the same always."""
    chance = np.random.default_rng(1234)
    world = np.repeat(SIZES, runs // len(SIZES))
    noise = chance.normal(1, 0.02, (runs, 1)) * chance.normal(1, 0.02, (runs, STEPS))
    times = 0.1 * noise * (1 + 0.02 * np.log2(world))[:, None]
    scalars = np.column_stack([world, 64 * world, np.full(runs, 0.9), np.full(runs, 0.4)])
    metrics = ["world_size", "global_batch_size", "accuracy", "loss"]
    metrics += ["step_time", "samples"] * STEPS
    steps = np.empty((runs, 2 * STEPS))
    steps[:, 0::2], steps[:, 1::2] = times, (64 * world)[:, None]
    number = pd.array([None] * 4 + [1 + k // 2 for k in range(2 * STEPS)], dtype="Int64")
    count, each = runs * len(metrics), len(metrics)
    names = [f"run-{i:05}" for i in range(runs)]
    frame = pd.DataFrame({
        "run": np.repeat(names, each), "source": "job.out",
        "line": np.tile(np.arange(1, each + 1), runs), "parser": "events",
        "metric": metrics * runs, "value": np.column_stack([scalars, steps]).ravel(),
        "unit": "1", "scope": "global", "step": pd.array(np.tile(number, runs), dtype="Int64"),
        "rank": pd.array([None] * count, dtype="Int64"), "node": None, "steps": 1,
        "message_size": pd.array([None] * count, dtype="Int64"), "variant": "",
    })  # fmt: skip
    frame.to_parquet(path, index=False)


def measured(command: Sequence[str], output: Path, **extra: str) -> Cost:
    """Run a command with its stdout in a file; return what it took.

    Raises:
        SystemExit: it failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **extra}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with output.open("wb") as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=out, cwd=FOLDER)
        _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{' '.join(command)}: {os.waitstatus_to_exitcode(status)}")
    return Cost(time.perf_counter() - started, used.ru_maxrss / 1024, output.stat().st_size)


def ours(path: Path, form: str) -> Callable[[], Cost]:
    command = [sys.executable, "-m", "hpc_train", "report", str(path), "-f", form]
    return lambda: measured(command, FOLDER / f"report.{form}")


def reframe(sessions: int) -> Callable[[], Cost]:
    """Return the comparison of two halves of so many stored sessions of 100 cases each."""
    home, stored = FOLDER / "reframe", FOLDER / f"reframe-{sessions}.db"
    program = home / "bin" / "reframe"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([home / "bin" / "pip", "install", "--quiet", REFRAME], check=True)
    settings = {"RFM_ENABLE_RESULTS_STORAGE": "1", "RFM_SQLITE_DB_FILE": str(stored)}
    if not stored.exists():
        (FOLDER / "check.py").write_text(CHECK, encoding="utf-8")
        run = [str(program), "-c", "check.py", "-r", "--exec-policy=serial", "-q"]
        measured(run, FOLDER / "reframe.txt", **settings)
        repeat(stored, sessions)
    compare, settings = compare_command(sessions)
    return lambda: measured(compare, FOLDER / "reframe.txt", **settings)


def compare_command(sessions: int) -> tuple[list[str], dict[str, str]]:
    """Return the command of ReFrame's comparison of so many sessions, and its variables."""
    program, stored = FOLDER / "reframe" / "bin" / "reframe", FOLDER / f"reframe-{sessions}.db"
    settings = {"RFM_ENABLE_RESULTS_STORAGE": "1", "RFM_SQLITE_DB_FILE": str(stored)}
    return [str(program), f"--performance-compare={halves()}"], settings


def repeat(stored: Path, sessions: int) -> None:
    """Store a session again and again, every other time ten days earlier."""
    with sqlite3.connect(stored) as base:
        name, start, end, blob, file = base.execute("SELECT * FROM sessions").fetchone()
        cases = base.execute("SELECT * FROM testcases").fetchall()
        for number in range(1, sessions):
            new, back = str(uuid.uuid4()), -60.0 * number - 10 * DAY * (number % 2)
            text = json.loads(blob.replace(name, new))
            text["session_info"]["time_start_unix"] = start + back
            text["session_info"]["time_end_unix"] = end + back
            row = (new, start + back, end + back, json.dumps(text), file)
            base.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", row)
            base.executemany(
                "INSERT INTO testcases VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(*c[:4], c[4] + back, new, c[6].replace(name, new)) for c in cases],
            )


def halves() -> str:
    """Return ReFrame's words for: the last five days against those before, means."""
    return "now-60d:now-5d/now-5d:now/mean:/"


def row(name: str, costs: Sequence[Cost], goal: str, beside: Sequence[Cost] = ()) -> str:
    best = min(cost.seconds for cost in costs)
    ratio = f"{best / min(cost.seconds for cost in beside):.2f}" if beside else ""
    times = ", ".join(f"{cost.seconds:.2f}" for cost in costs)
    peak = max(cost.mib for cost in costs)
    size = f"{costs[0].size / 1e6:.2f} MB"
    return f"| {name} | {best:.2f} s | {times} | {peak:.0f} MiB | {size} | {goal} | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth, to see whether it works")
    parser.add_argument("-o", "--output", type=Path, help="write Markdown to this file, too")
    options = parser.parse_args()
    runs, rounds = (1000, 2) if options.quick else (10_000, 3)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"records-{runs}.parquet"
    if not path.exists():
        records(path, runs)
    before = machine()
    measures = {form: ours(path, form) for form in ("text", "json", "html")}
    measures["reframe"] = reframe(runs // CASES)
    costs: dict[str, list[Cost]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            costs[name].append(measure())
    other = costs.pop("reframe")
    goals = {"text": "3 s, 1 GB", "json": "3 s, 1 GB", "html": "10 s, 1 GB, 5 MB"}
    lines = [
        "| what | best | rounds [s] | peak memory | output | goal | / ReFrame |",
        f"|{' --- |' * 7}",
        *(row(f"report -f {form}", costs[form], goals[form], other) for form in costs),
        row(f"ReFrame's comparison of {runs} cases", other, ""),
    ]
    about = f"{runs} runs of 100 records, Parquet; {before}. Whole processes, in turns."
    text = f"# Reports\n\n{about}\n\n" + "\n".join(lines) + "\n"
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
