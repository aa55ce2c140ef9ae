"""One job file, three launchers, two names of the first node: the same training."""

from __future__ import annotations

import re
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


def places(user: User, run: str) -> tuple[list[str], set[str]]:
    """Return the host of each rank, and the address that all of them meet at."""
    text = "".join(user.logs(run).values())
    found = sorted(re.findall(r"^rank (\d+) on (\S+) of (\S+)$", text, re.MULTILINE))
    assert [rank for rank, _, _ in found] == [str(rank) for rank in range(len(found))]
    return [host for _, host, _ in found], {address for _, _, address in found}


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


def test_an_address_on_the_fast_network(user: User) -> None:
    """Torchrun has to know that it is the first node although its name is another."""
    site = user.site("fast", "  host: first-host\n", "  host: first-host\n  suffix: i\n")
    say = "echo rank $RANK on $(hostname) of $MASTER_ADDR"
    file = user.write("job.yaml", job("train", say, nodes=2, time="3m"))
    done = user.submit(file, "--launcher", "torchrun", "--wait", site=site)
    assert done.returncode == 0, done.stderr
    hosts, addresses = places(user, "train")
    assert len(set(hosts)) == 2
    assert addresses == {f"{hosts[0]}i"}
