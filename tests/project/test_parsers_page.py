"""The page about parsers: its code works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.logs.collect import collect
from tests.command_line import run_command

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODE = re.compile(r"```python\n# my_parsers/(?P<name>\w+)\.py\n(?P<text>.*?)```", re.DOTALL)


def modules() -> dict[str, str]:
    page = (DOCS / "logs-and-tables.md").read_text(encoding="utf-8")
    return {match["name"]: match["text"] for match in CODE.finditer(page)}


def test_the_parsers_of_the_guide_read_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "my_parsers"
    package.mkdir(parents=True)
    for name, text in modules().items():
        (package / f"{name}.py").write_text(text)
    metadata = tmp_path / "site" / "ours-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[hpctrain.parsers]\nour-trainer = my_parsers.trainer:TRAINER\n"
        "our-solver = my_parsers.blocks:Blocks\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    log = tmp_path / "a.log"
    log.write_text("0: it 20 ms=131.5 imgs/s=1946.8\n=== step 7 ===\ntime/s: 0.25\n")
    found = [(r.parser, r.metric, r.value, r.step, r.rank) for r in collect("r", [log])]
    assert found == [
        ("our-trainer", "step_time", pytest.approx(0.1315), 20, 0),
        ("our-trainer", "samples_per_second", 1946.8, 20, 0),
        ("our-solver", "step_time", 0.25, 7, None),
    ]


ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "logs-and-tables.md"
SNIPPET = re.compile(r"^```python\n(import json.*?)^```$", re.MULTILINE | re.DOTALL)


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
