"""Summaries that every rank prints: they count once, but each of those ranks was there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
SUMMARY = (
    "{'train_runtime': 100.0, 'train_samples_per_second': 64.0, "
    "'train_steps_per_second': 1.0, 'train_loss': 2.0, 'epoch': 1.0}\n"
)


@pytest.mark.parametrize("joint", [True, False], ids=["one file", "rank files"])
def test_sixteen_ranks_say_the_same(hpctrain: Hpctrain, joint: bool) -> None:
    Path("job").mkdir()
    if joint:
        Path("job/job.out").write_text("".join(f"{rank:>2}: {SUMMARY}" for rank in range(16)))
    else:
        for rank in range(16):
            Path(f"job/rank-{rank}.out").write_text(SUMMARY)
    done = hpctrain("collect", "job", "--json")
    rates = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["value"] for one in rates if one["metric"] == "samples_per_second"] == [64.0]
    (row,) = json.loads(hpctrain("report", "job", "-f", "json").stdout)["rows"]
    assert (row["ranks"], row["throughput"]["value"]) == (16, 64.0)
