"""Advice before a run, the run, and the report that compares both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

TWO_RANKS = "nodes,gpus_per_node,tasks_per_node,global_batch_size,step_time\n1,0,2,32,0.5\n"
PROGRAM = """\
for step in range(24):
    print('@hpct {"step": %d, "step_time": STEP, "global_batch_size": 32}' % step, flush=True)
"""
JOB = """\
name: mine
command: [python, program.py]
resources: {nodes: 1, tasks_per_node: 1, cpus_per_task: 1, time: 5m}
"""
ADVISE = ("advise", "job.yaml", "--site", "local", "--condition", "global_batch=32")


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    (tmp_path / "two.csv").write_text(TWO_RANKS)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def run(hpctrain: Hpctrain, folder: Path, seconds: float) -> None:
    (folder / "program.py").write_text(PROGRAM.replace("STEP", str(seconds)))
    made = hpctrain("submit", "job.yaml", "--site", "local", "--wait")
    assert made.returncode == 0, made.stderr


@pytest.mark.process
@pytest.mark.parametrize(("seconds", "inside"), [(0.9, True), (1.3, False)])
def test_a_run_checks_the_forecast(
    hpctrain: Hpctrain, prepared: Path, seconds: float, inside: bool
) -> None:
    made = hpctrain(*ADVISE, "--measured", "two.csv")
    assert made.returncode == 0, made.stderr
    assert "Record on local" not in made.stdout
    run(hpctrain, prepared, seconds)
    report = hpctrain("report", "mine", "-f", "json")
    (row,) = json.loads(report.stdout)["forecasts"]
    assert (row["strategy"], row["ranks"], row["step_s"]) == ("single", 1, seconds)
    assert row["inside"] is inside
    # Half of the ranks take at most twice as long.
    assert row["forecast_step_s"]["high"] == pytest.approx(1.0)
    assert "Forecast and measured" in hpctrain("report", "mine").stdout
    # Advice after the run is no forecast of it.
    again = hpctrain(*ADVISE)
    text = " ".join(again.stdout.split())
    within = f"1 forecast checked by later runs, {int(inside)} within the bounds."
    assert f"Record on local: {within}" in text
    assert ("Outside: single on 1 rank." in text) is not inside


@pytest.mark.process
def test_advice_after_the_run_is_no_forecast(hpctrain: Hpctrain, prepared: Path) -> None:
    run(hpctrain, prepared, 0.9)
    hpctrain(*ADVISE, "--measured", "two.csv")
    assert "forecasts" not in json.loads(hpctrain("report", "mine", "-f", "json").stdout)


def test_a_forecast_is_stored_once(hpctrain: Hpctrain, prepared: Path) -> None:
    for _ in range(2):
        assert hpctrain(*ADVISE, "--measured", "two.csv").returncode == 0
    (path,) = prepared.glob("*/forecasts/mine.json")
    stored = json.loads(path.read_text())
    assert stored["schema"] == 1
    assert [one["strategy"] for one in stored["forecasts"]] == ["single"]


@pytest.mark.process
def test_a_damaged_file_costs_no_report(hpctrain: Hpctrain, prepared: Path) -> None:
    hpctrain(*ADVISE, "--measured", "two.csv")
    run(hpctrain, prepared, 0.9)
    (path,) = prepared.glob("*/forecasts/mine.json")
    path.write_text("{")
    report = hpctrain("report", "mine")
    assert report.returncode == 0
    assert "mine.json: damaged" in report.stderr
    advice = hpctrain(*ADVISE, "--measured", "two.csv")
    assert advice.returncode == 0
    assert "These forecasts are not stored, so that no run checks them" in " ".join(
        advice.stdout.split()
    )


def test_advice_without_an_upper_bound_stores_nothing(hpctrain: Hpctrain, prepared: Path) -> None:
    assert hpctrain(*ADVISE).returncode == 0
    assert not list(prepared.glob("*/forecasts"))
