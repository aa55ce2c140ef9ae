"""The example of docs/restart.md on two nodes, with three faults in one run: it loses nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Slurm
from tests.end_to_end import gated
from tests.end_to_end.gated import Training
from tests.end_to_end.injected_faults import SAVED, rank_killed, requeued, signalled
from tests.end_to_end.user import User
from tests.trainer.launching import environment

pytestmark = [pytest.mark.long, pytest.mark.slurm, pytest.mark.usefixtures("torch")]
PROGRAM = ("-m", "tests.end_to_end.held_example")
AGENT = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
# What ends the start; on a busy machine, Slurm may kill the script before it writes its line.
FAULTS = ((signalled, SAVED), (requeued, ""), (rank_killed, "exit code "))


@pytest.fixture
def user(accounted: User) -> User:
    return accounted


def test_three_faults_in_one_run(user: User, slurm: Slurm, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    command = [sys.executable, *AGENT, *PROGRAM]
    alone = environment(HPCTRAIN_CHECKPOINTS=whole / "checkpoints", PYTHONPATH=gated.ROOT)
    subprocess.run(command, cwd=whole, env=alone, check=True, timeout=400)
    training = submit(user, slurm)
    for number, (inject, end) in enumerate(FAULTS):
        training.reaches_gate()
        inject(training)
        assert end in training.next_end(number)["reason"]
        training.starts_again(number + 1)
        training.reaches_gate()
        training.open_gate()
    training.becomes("COMPLETED")
    assert user.run("example")["restarts"] != []
    assert (user.folder / "model.pt").read_bytes() == (whole / "model.pt").read_bytes()
    log = (training.folder / "logs" / "rank-0.out").read_text()
    assert log.count("\nepoch 19: loss ") == 1


def submit(user: User, slurm: Slurm) -> Training:
    gates = user.folder / "example"
    gates.mkdir()
    job = {
        "name": "example",
        "command": ["python", *PROGRAM, str(gates)],
        "launcher": "torchrun",
        "qos": "normal",
        "resources": {"nodes": 2, **gated.NODE},
        "signal_before_end": "2m",
        "lifecycle": {"requeue_on": [1, 75, 137]},
    }
    return gated.submitted(user, slurm, job)
