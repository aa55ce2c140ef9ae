"""What failed is run once more, on other nodes where that is asked for; what is done stays."""

import json

import pytest

from tests.conftest import Slurm
from tests.end_to_end.queue import drained
from tests.end_to_end.studies import job
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
EVENTS = [
    '{"event": "step", "step": 1, "step_time": 0.5, "samples": 8}',
    '{"event": "end", "global_batch_size": 8, "world_size": 1}',
]
PRINT = "; ".join(f"echo '@hpct {event}'" for event in EVENTS)
STUDY = {
    "name": "unlucky",
    "job": job("one", f'[ "$X" = 1 ] || [ "$(hostname)" != lab1 ] || exit 9; {PRINT}', time="1m"),
    "axes": {"env.X": ["1", "2"]},
    "repetitions": 2,
    "scaling": "strong",
    "warmup": {"steps": 0},
}


def states(user: User) -> dict[tuple[int, int, int], tuple[str, str]]:
    """Return (X, repetition, attempt) -> state and problem."""
    return {
        (int(row["axes"]["env.X"]), row["repetition"], row["attempt"]): (
            row["state"],
            row["problem"],
        )
        for row in user.runs("unlucky").values()
    }


def test_retry(user: User, slurm: Slurm) -> None:
    good, bad = ("COMPLETED", ""), ("FAILED", "rank 0 on lab1: exit code 9")
    with drained(slurm, "lab[2-4]"):
        assert user.submit(user.write("study.yaml", STUDY), "--wait").returncode == 3
        first = {(1, 1, 1): good, (1, 2, 1): good, (2, 1, 1): bad, (2, 2, 1): bad}
        assert states(user) == first

        again = user.hpctrain("retry", "unlucky", "--wait")
        assert again.returncode == 1
        second = {**first, (2, 1, 2): bad, (2, 2, 2): bad}
        assert states(user) == second

    elsewhere = user.hpctrain("retry", "unlucky", "--wait", "--exclude-failed-nodes")
    assert elsewhere.returncode == 0, elsewhere.stderr
    assert "without the nodes lab1" in elsewhere.stderr
    assert "of another job" not in elsewhere.stderr
    assert len(elsewhere.stdout.split()) == 2
    assert states(user) == {**second, (2, 1, 3): good, (2, 2, 3): good}
    moved = {row["nodes"] for row in user.runs("unlucky").values() if row["attempt"] == 3}
    assert moved <= {"lab2", "lab3", "lab4"}

    table = json.loads(user.hpctrain("report", "unlucky", "-f", "json").stdout)
    assert [(row["n_ok"], row["n_submitted"]) for row in table["rows"]] == [(2, 2), (2, 2)]

    nothing = user.hpctrain("retry", "unlucky")
    assert nothing.returncode == 2
    assert nothing.stdout == ""
    assert nothing.stderr.startswith("hpctrain: unlucky: nothing to retry; 8 runs ")
