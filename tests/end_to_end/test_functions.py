"""submitit's `AutoExecutor(folder, cluster="hpctrain")`: functions in our scripts."""

from typing import Any

import pytest

from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
# As a user has it, so that functions are pickled by value.
HEAD = """\
import json, os, socket, sys
import submitit

def where(word):
    me = submitit.JobEnvironment()
    rank = me.global_rank, me.num_tasks, me.local_rank, int(os.environ["RANK"])
    return word, *rank, socket.gethostname(), os.environ["MASTER_ADDR"]

def fail():
    raise ValueError("the moon is full")

def executor(**parameters):
    made = submitit.AutoExecutor("out", cluster="hpctrain")
    made.update_parameters(timeout_min=3, cpus_per_task=1, gpus_per_node=0, **parameters)
    made.update_parameters(hpctrain_site="lab")
    return made
"""
LAUNCHERS = """
jobs = {}
for launcher in ("srun", "torchrun", "mpirun"):
    made = executor(nodes=2, tasks_per_node=2, hpctrain_launcher=launcher)
    jobs[launcher] = made.submit(where, launcher)
print(json.dumps({launcher: job.results() for launcher, job in jobs.items()}))
"""
FAILURE = """
job = executor(nodes=1, tasks_per_node=1, hpctrain_launcher="srun").submit(fail)
print(json.dumps([type(job.exception()).__name__, str(job.exception())]))
"""


def answer(user: User, script: str) -> Any:
    """Run a script that uses submitit; return what it prints."""
    return user.python(HEAD + script)


@pytest.mark.mpi
@pytest.mark.usefixtures("torch")
def test_results_of_every_rank(user: User) -> None:
    results = answer(user, LAUNCHERS)
    assert list(results) == ["srun", "torchrun", "mpirun"]
    for launcher, ranks in results.items():
        first, second = ranks[0][-2], ranks[2][-2]
        assert first != second
        assert ranks == [
            [launcher, rank, 4, rank % 2, rank, first if rank < 2 else second, first]
            for rank in range(4)
        ]


def test_an_exception_comes_back(user: User) -> None:
    kind, text = answer(user, FAILURE)
    assert kind == "FailedJobError"
    assert "ValueError: the moon is full" in text
