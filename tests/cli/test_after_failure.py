"""What commands say of a run that failed: its cause, the next step, the log of the rank."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

CRASH = """\
import os, pathlib, time
print("loading", flush=True)
loaded = pathlib.Path("loaded")
if os.environ["RANK"] == "1":
    while not loaded.exists():
        time.sleep(0.01)
    raise ValueError("the batch is empty")
loaded.touch()
time.sleep(600)
"""
CAUSE = "ValueError of rank 1: the batch is empty"


@pytest.fixture
def failed(hpctrain: Hpctrain) -> Hpctrain:
    Path("train.py").write_text(CRASH)
    done = hpctrain("submit", "train.py", "--site", "local", "--tasks-per-node", "2", "--wait")
    run_id = done.stdout.strip()
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("FAILED")]
    assert "rank 1 on " in line and line.endswith(f"exit code 1; {CAUSE}")
    assert done.stderr.endswith(f"next: hpctrain diagnose {run_id}\n")
    return hpctrain


@pytest.mark.process
def test_status_shows_the_cause_and_the_next_step(failed: Hpctrain) -> None:
    done = failed("status", "train")
    assert CAUSE in done.stdout
    assert done.stderr.startswith("next: hpctrain diagnose ")
    (row,) = json.loads(failed("status", "train", "--json").stdout)["runs"]
    assert row["cause"] == CAUSE and CAUSE not in row["problem"]


@pytest.mark.process
def test_logs_begin_with_the_rank_that_failed(failed: Hpctrain) -> None:
    done = failed("logs", "train")
    assert done.stdout.startswith("==> rank-1.out <==\nloading\nTraceback")
    assert "==> rank-0.out <==" in done.stdout
    assert done.stderr == (
        "hpctrain: rank 1 failed first; its log comes first (--rank N prints one)\n"
    )
    one = failed("logs", "train", "--rank", "0")
    assert (one.stdout, one.stderr) == ("==> rank-0.out <==\nloading\n", "")
