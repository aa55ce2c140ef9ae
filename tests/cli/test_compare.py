import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

STUDY = Path(__file__).parents[2] / "results/studies/digits-two-cores"


def log(path: Path, rates: list[float]) -> str:
    """Write one log per run, as a job of two ranks states its throughput at the end."""
    path.mkdir()
    for i, value in enumerate(rates):
        event = {"world_size": 2, "global_batch_size": 64, "samples_per_second": value}
        (path / f"run{i}.log").write_text(f"@hpct {json.dumps({'event': 'end', **event})}\n")
    return str(path)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    return log(tmp_path / "old", [100, 101, 99]), log(tmp_path / "new", [80, 81, 79])


def test_a_slower_side_fails_the_check(hpctrain: Hpctrain, sides: tuple[str, str]) -> None:
    old, new = sides
    made = hpctrain("compare", old, new, "--check")
    assert made.returncode == 1, made.stderr
    assert "B is slower than A at 1 of 1 point, by 20 %." in made.stdout
    assert "check: B worse: 2 ranks: 0.800 [" in made.stderr
    back = hpctrain("compare", new, old, "--check", "-f", "json")
    assert back.returncode == 0, back.stderr
    (row,) = json.loads(back.stdout)["rows"]
    assert row["verdict"] == "B better"
    assert row["ratio"]["low"] > 1.2


def test_a_report_is_a_reference_and_junit_is_written_when_the_check_fails(
    hpctrain: Hpctrain, sides: tuple[str, str], tmp_path: Path
) -> None:
    old, new = sides
    assert hpctrain("report", old, "-o", "old.json").returncode == 0
    same = hpctrain("report", old, "--check", "--against", "old.json")
    assert same.returncode == 0, same.stderr
    made = hpctrain("report", new, "--check", "--against", "old.json", "--junit", "checks.xml")
    assert made.returncode == 1, made.stderr
    assert "check: gate not met: 2 ranks: 0.800 [" in made.stderr
    assert 'failures="1"' in (tmp_path / "checks.xml").read_text()
    (tmp_path / "cut.json").write_bytes((tmp_path / "old.json").read_bytes()[:500])
    cut = hpctrain("report", new, "--check", "--against", "cut.json")
    assert (cut.returncode, "cut.json: a truncated or damaged report" in cut.stderr) == (2, True)
    edited = json.loads((tmp_path / "old.json").read_bytes())
    edited["runs"][0]["ranks"] = "two"
    (tmp_path / "edited.json").write_text(json.dumps(edited))
    wrong = hpctrain("compare", "old.json", "edited.json")
    assert (wrong.returncode, "$[1].ranks" in wrong.stderr) == (2, True), wrong.stderr
    (tmp_path / "old.json").write_text('{"schema": 2, "rows": [], "runs": []}')
    newer = hpctrain("report", new, "--check", "--against", "old.json")
    assert newer.returncode == 2
    assert "written by a newer hpctrain" in newer.stderr


def test_a_check_that_saw_nothing_does_not_pass(
    hpctrain: Hpctrain, sides: tuple[str, str], tmp_path: Path
) -> None:
    """One run has no verdict, and other sizes have no ratio."""
    one, other = log(tmp_path / "one", [50]), tmp_path / "other.csv"
    other.write_text("nodes,tasks_per_node,samples_per_second\n7,1,100\n7,1,101\n")
    single = hpctrain("compare", sides[0], one, "--check")
    assert single.returncode == 1, single.stderr
    assert "check: no point has a verdict: n=1 in B" in single.stderr
    apart = hpctrain("compare", sides[0], str(other), "--check")
    assert apart.returncode == 1, apart.stderr
    assert "check: not decided: 2 ranks: not in B" in apart.stderr
    assert hpctrain("compare", sides[0], str(other)).returncode == 0
