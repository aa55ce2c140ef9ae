"""What NCCL really used, where the result of a run is told."""

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Hpctrain

LOGS = Path(__file__).parents[1] / "log_files" / "nccl"
STEPS = "".join(
    f'@hpct {{"event": "step", "rank": 0, "step": {step}, "step_time": 0.1, "samples": 8}}\n'
    for step in range(1, 41)
)
SITE = """\
schema: 1
name: fast
extends: local
description: a machine that promises InfiniBand
scheduler: local
network: {fabric: infiniband}
sources:
  - {what: made for the test, date: 2026-11-01, confidence: high}
"""


def _job(name: str) -> None:
    Path("fast.yaml").write_text(SITE)
    Path("train.py").write_text(f"print({STEPS!r})\nprint(open({str(LOGS / name)!r}).read())\n")


@pytest.mark.process
def test_submit_and_report_say_that_sockets_are_not_what_was_promised(hpctrain: Hpctrain) -> None:
    _job("old_2.4.log")
    words = ("--site", "./fast.yaml", "--launcher", "single", "--cpus-per-task", "1", "--wait")
    done = hpctrain("submit", "train.py", *words)
    assert done.returncode == 0, done.stderr
    assert "transport: NCCL sends data between nodes over TCP sockets over eth0" in done.stderr
    assert "; the profile states infiniband (logs/rank-0.out:" in done.stderr
    report = hpctrain("report", "train", "--notes")
    assert " sockets " in report.stdout
    assert "transport: NCCL sends data between nodes" in " ".join(report.stdout.split())
    assert report.stderr == ""
    assert "TCP sockets" in hpctrain("report", "train", "-o", "page.csv").stderr
    before = hpctrain("report", "train", "-f", "json").stdout
    assert json.loads(before)["rows"][0]["transport"] == "sockets"
    # The transport outlives the logs.
    (run,) = Path("results/train").glob("*/run.json")
    shutil.rmtree(run.parent / "logs")
    assert hpctrain("report", "train", "-f", "json").stdout == before
