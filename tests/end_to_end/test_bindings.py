"""The cores of each rank are those that `explain` states: Slurm binds them on a lab of its own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hpc_train.lab import state_file
from tests.end_to_end.daemons import kill_slurmd, start_controller, start_slurmd, stop_controller
from tests.end_to_end.user import User

pytestmark = [
    pytest.mark.long,
    pytest.mark.slurm,
    pytest.mark.mpi,
    pytest.mark.usefixtures("torch"),
]

CORES = {0, 1}
NODES = ("lab1", "lab2")
PROGRAM = """\
import os
print("own", os.environ["LOCAL_RANK"], "-".join(map(str, sorted(os.sched_getaffinity(0)))))
"""
OWN = re.compile(r"^own ([01]) (\S+)$", re.MULTILINE)
JOB = {
    "command": ["python", "-c", PROGRAM],
    "resources": {
        "nodes": 2,
        "tasks_per_node": 2,
        "cpus_per_task": 1,
        "gpus_per_node": 0,
        "time": "5m",
    },
}


@pytest.fixture
def binding_lab(
    user_of_a_lab: Callable[..., AbstractContextManager[User]],
) -> Iterator[User]:
    """Return a user of a lab whose Slurm binds ranks; elsewhere the cores of nodes are imaginary.

    A node has as many cores as are bound here, so that those of a job are real ones.
    """
    if not os.sched_getaffinity(0) >= CORES:
        pytest.skip(f"this process may not use the cores {sorted(CORES)}")
    with user_of_a_lab("--nodes", "2", "--cpus", "2", "--gpus", "0") as user:
        lab = state_file.read()
        assert lab is not None
        conf = Path(lab.settings.folder, "slurm.conf")
        text = conf.read_text()
        assert text.count("task/none") == 1
        conf.write_text(text.replace("task/none", "task/affinity"))
        stop_controller()
        for node in NODES:
            kill_slurmd(node)
        start_controller()
        for node in NODES:
            start_slurmd(node)
        yield user


def test_ranks_have_the_cores_that_explain_states(binding_lab: User) -> None:
    user = binding_lab
    assert bound(user, "srun", "cpu_bind", "map_cpu:1,0") == {"0": "1", "1": "0"}
    assert bound(user, "srun", "cpu_bind", "mask_cpu:0x3,0x2") == {"0": "0-1", "1": "1"}
    # The ranks of an agent have all cores of the job, not the first set of the profile.
    assert bound(user, "torchrun", "cpu_bind", "map_cpu:1,0") == {"0": "0-1", "1": "0-1"}
    assert bound(user, "mpirun", "bind_to", "core") == {"0": "0", "1": "1"}
    assert bound(user, "mpirun", "bind_to", "none") == {"0": "0-1", "1": "0-1"}


def bound(user: User, launcher: str, key: str, value: str) -> dict[str, str]:
    """Run the job on a site with a binding; return the cores of each local rank of a node.

    Where `explain` states cores for the local ranks, they are these.
    """
    name = f"{launcher}-{value.replace(':', '-').replace(',', '-')}"
    site = user.site(name, "launchers:\n", f"launchers:\n  {key}: '{value}'\n")
    file = user.write("job.yaml", {**JOB, "name": name, "launcher": launcher})
    said = json.loads(user.hpctrain("explain", file, "--site", f"./{site}.yaml", "--json").stdout)
    stated = {row["setting"]: row["value"] for row in said if row["kind"] == "setting"}
    done = user.submit(file, "--wait", site=f"./{site}.yaml")
    assert done.returncode == 0, done.stderr
    logs = user.logs(name)
    own = [found for log, text in logs.items() if "rank-" in log for found in OWN.findall(text)]
    cores = dict(own)
    assert sorted(own) == sorted([*cores.items()] * len(NODES)), logs
    expected = {rank: stated.get(f"local_rank.{rank}") for rank in cores}
    assert launcher != "srun" or expected == {rank: f"cores {one}" for rank, one in cores.items()}
    return cores
