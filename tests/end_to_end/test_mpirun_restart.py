"""A training under mpirun on two nodes: it saves when its script is asked to, and goes on.

mpirun hands USR1 on to its daemon on the other node. TERM ends the daemon, and with it the rank.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import Slurm
from tests.end_to_end import gated
from tests.end_to_end.gated import Training
from tests.end_to_end.injected_faults import BY_SLURM, SAVED, requeued
from tests.end_to_end.queue import starts_again
from tests.end_to_end.user import User

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
]


PROGRAM = """\
import os, pathlib, signal, sys, time
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append("by a signal"))
file = os.environ.get("HPCTRAIN_STOP_FILE", "")
folder = pathlib.Path(os.environ["HPCTRAIN_RUN"])
print("ready", flush=True)
while not asked and not (folder / "restarts.jsonl").exists():
    time.sleep(0.05)
    if file and pathlib.Path(file).exists():
        asked.append("by a file")
print("asked", *asked, flush=True)
sys.exit(75 if asked else 0)
"""


def test_ranks_of_both_nodes_are_asked_to_stop(user: User) -> None:
    """Without torch, by a signal to the script and by a file; the job starts again."""
    (user.folder / "program.py").write_text(PROGRAM)
    ways = ("signal", "file")
    for how in ways:
        spec = {
            "name": how,
            "command": ["python", "program.py"],
            "launcher": "mpirun",
            "signal_before_end": "2m",
            "lifecycle": {"stop_by": how},
            "resources": {"nodes": 2, **gated.NODE},
        }
        done = user.submit(user.write(f"{how}.yaml", spec))
        assert done.returncode == 0, done.stderr
    for how in ways:
        user.says(how, "ready", "rank-0.out", "rank-1.out")
        job = ("--batch", "--signal=USR1", user.run(how)["job"])
        subprocess.run(["scancel", *job], check=True)
    for how in ways:
        row = user.until(how, lambda row: row["restarts"] != [])
        (end,) = row["restarts"]
        assert end["exit_code"] == 75, end
        logs = user.logs(how)
        assert [f"asked by a {how}" in logs[f"rank-{rank}.out"] for rank in (0, 1)] == [True, True]
    for how in ways:
        starts_again(user.run(how)["job"])
        assert user.wait(how, "COMPLETED")["restart_count"] == 1


def warned(training: Training) -> None:
    """Send what Slurm sends before the time limit, to the script alone."""
    training.slurm("scancel", "--batch", "--signal=USR1", training.number)


@pytest.mark.long
@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("stop_by", ["signal", "file"])
def test_it_saves_and_is_queued_again(
    accounted: User, slurm: Slurm, tmp_path: Path, stop_by: str
) -> None:
    user = accounted
    lifecycle = {"stop_by": stop_by}
    training = gated.submit(
        user, slurm, "mpi", 3 * gated.GATE, launcher="mpirun", lifecycle=lifecycle
    )
    for number, (inject, end) in enumerate(((warned, SAVED), (requeued, BY_SLURM))):
        training.reaches_gate()
        inject(training)
        row = training.next_end(number)
        assert end in row["reason"], row
        if end == SAVED:
            assert (row["step"], row["steps_lost"], row["exit_code"]) == (training.gate, 0, 75)
        training.starts_again(number + 1)
        training.reaches_gate()
        training.open_gate()
    training.reaches_gate()
    training.open_gate()
    training.becomes("COMPLETED")
    logs = [(training.folder / f"logs/rank-{rank}.out").read_text() for rank in (0, 1)]
    expected = gated.undisturbed(tmp_path, 3 * gated.GATE)
    assert [gated.result(log) for log in logs] == expected
