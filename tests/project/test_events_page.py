"""docs/events.md: the loop that it shows prints what is collected."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import run_command

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "events.md"
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.process
def test_loop_of_events_is_collected(tmp_path: Path) -> None:
    (snippet,) = SNIPPET.findall(PAGE.read_text(encoding="utf-8"))
    log = tmp_path / "loop.log"
    shown = run(tmp_path, "-c", snippet)
    log.write_text(shown, encoding="utf-8")
    lines = run_command(["collect", str(log), "--json"], dict(os.environ)).stdout.splitlines()
    records = [json.loads(line) for line in lines]
    steps = list(range(1, 31))
    assert values(records, "samples", "per_rank") == [(step, 32) for step in steps]
    assert values(records, "loss", "per_rank") == [(step, 1 / step) for step in steps]
    times = values(records, "step_time", "per_rank")
    assert [step for step, _ in times] == steps
    assert all(time > 0 for _, time in times)
    assert values(records, "global_batch_size", "global") == [(None, 32)]


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def values(
    records: list[dict[str, object]], metric: str, scope: str
) -> list[tuple[int | None, float]]:
    found = [r for r in records if r["metric"] == metric and r["scope"] == scope]
    return [
        (int(str(r["step"])) if r["step"] is not None else None, float(str(r["value"])))
        for r in found
    ]
