"""One job file, three launchers, two names of the first node: the same training."""

import sys

import pytest

from tests.end_to_end.studies import job
from tests.end_to_end.user import User

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.usefixtures("torch"),
]
LAUNCHERS = ["srun", "torchrun", "mpirun"]
STEPS = 5
OPTIONS = f"--global-batch-size 32 --steps {STEPS} --data synthetic --width 4 --no-accuracy"
TRAIN = f"exec {sys.executable} -m hpc_train.trainer.train {OPTIONS}"


def test_the_launcher_makes_no_difference(user: User) -> None:
    study = {
        "name": "three",
        "job": job("train", TRAIN, nodes=2, time="3m"),
        "axes": {"launcher": LAUNCHERS},
        "repetitions": 1,
        "scaling": "strong",
    }
    done = user.submit(user.write("study.yaml", study), "--wait")
    assert done.returncode == 0, done.stderr
    launchers = {run: row["axes"]["launcher"] for run, row in user.runs("three").items()}
    assert sorted(launchers.values()) == sorted(LAUNCHERS)
    losses: dict[str, dict[tuple[int, int], float]] = {word: {} for word in LAUNCHERS}
    for record in user.records("three", "loss"):
        if record["rank"] is not None and record["step"] is not None:
            key = record["rank"], record["step"]
            losses[launchers[record["run"]]][key] = record["value"]
    assert {rank for rank, _ in losses["srun"]} >= {0, 1}
    steps = {losses["srun"][1, step] for step in range(1, STEPS + 1)}
    assert len(steps) == STEPS, "it learns nothing"
    assert losses["torchrun"] == losses["srun"]
    assert losses["mpirun"] == losses["srun"]
