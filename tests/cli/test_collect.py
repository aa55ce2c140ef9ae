"""`hpctrain collect` of anybody's logs: what it reads, says, and exits with."""

import json
from pathlib import Path

import pytest

from tests.conftest import Hpctrain

STEP = "iter 1: loss 2.0, time 100.0ms, mfu 30%\n"


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, hpctrain: Hpctrain) -> None:
    Path("ranks").mkdir()
    for rank in (0, 1):
        Path(f"ranks/rank-{rank}.out").write_text(STEP)
    Path("near.log").write_text("\niter 1: \x1b[31m\x1b]0;x\x07los\n")


def test_pattern_in_quotes_and_what_was_found(hpctrain: Hpctrain) -> None:
    done = hpctrain("collect", "ranks/rank-*.out", "--json")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(record["run"], record["rank"]) for record in records} == {("ranks", 0), ("ranks", 1)}
    assert f"nanogpt: 2 lines, the first ranks/rank-0.out:1: {STEP}" in done.stderr
    assert "6 records of 1 run\n" in done.stderr


def test_no_known_format_names_what_came_near(hpctrain: Hpctrain) -> None:
    done = hpctrain("collect", "near.log")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no line of a known format; nearest: nanogpt (near.log:2: 'iter 1: los')" in done.stderr
    assert "\x1b" not in done.stderr


def test_nothing_is_written_beside_the_logs(hpctrain: Hpctrain) -> None:
    assert hpctrain("collect", "ranks").returncode == 0
    assert len(list(Path("ranks").iterdir())) == 2
