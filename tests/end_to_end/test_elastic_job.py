"""A torchrun job of three nodes loses one and goes on with two, on a real Slurm."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.end_to_end import daemons
from tests.end_to_end.user import User
from tests.submissions.waiting import ended, wait_for

pytestmark = [pytest.mark.long, pytest.mark.slurm, pytest.mark.usefixtures("torch")]
STARTED = re.compile(r"rank (\d) of (\d) on (lab\d), process (\d+)")


@pytest.fixture
def user(user_of_a_lab: Callable[..., AbstractContextManager[User]]) -> Iterator[User]:
    """Return somebody on a lab of three nodes."""
    with user_of_a_lab("--nodes", "3") as found:
        yield found


def test_a_job_goes_on_without_a_lost_node(user: User) -> None:
    size = {"nodes": 3, "tasks_per_node": 1, "cpus_per_task": 1, "gpus_per_node": 0, "time": "9m"}
    spec = {
        "name": "elastic",
        "command": ["python", "-m", "tests.end_to_end.elastic_training", str(user.folder)],
        "launcher": "torchrun",
        "elastic": {"min_nodes": 2, "max_restarts": 2},
        "resources": size,
    }
    done = user.submit(user.write("elastic.yaml", spec))
    assert done.returncode == 0, done.stderr
    run = Path(user.folder, user.run("elastic")["folder"])
    wait_for(lambda: len(starts(run, 3)) == 3)
    nodes = {node: pid for _, _, node, pid in starts(run, 3)}
    daemons.kill_node("lab3")
    began = time.time()
    wait_for(lambda: ended(nodes["lab3"]))
    wait_for(lambda: len(starts(run, 2)) == 2)
    # Shown with a failure, and by pytest -s: the figure of docs/restart.md.
    print(f"elastic, a node lost: {time.time() - began:.1f} s")  # noqa: T201
    assert {node for _, _, node, _ in starts(run, 2)} == {"lab1", "lab2"}
    (user.folder / "enough").touch()
    wait_for(lambda: all("enough" in log(run, rank) for rank in (0, 1)))
    wait_for(lambda: user.run("elastic")["state"] in ("COMPLETED", "FAILED", "NODE_FAIL"))
    assert user.run("elastic")["state"] == "COMPLETED"


def log(run: Path, rank: int) -> str:
    path = run / "logs" / f"rank-{rank}.out"
    return path.read_text() if path.exists() else ""


def starts(run: Path, ranks: int) -> list[tuple[str, str, str, str]]:
    """Return rank, number of ranks, node and process of the ranks that started with so many."""
    text = "".join(log(run, rank) for rank in range(3))
    return [match for match in STARTED.findall(text) if match[1] == str(ranks)]
