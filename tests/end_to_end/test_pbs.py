"""Commands of hpctrain on the small PBS, with the ranks of a job."""

import json
import os
from pathlib import Path

import pytest

from tests.end_to_end.user import User
from tests.servers.pbs import RunningPbs, pbs
from tests.submissions.waiting import wait_for

pytestmark = pytest.mark.process
RANKS = """\
import os, sys
import torch.distributed as dist
dist.init_process_group("gloo")
print("rank", dist.get_rank(), "of", dist.get_world_size(), os.environ["HPCTRAIN_NODE"])
dist.barrier()
sys.exit(int(sys.argv[1]) if dist.get_rank() == 3 else 0)
"""
JOB = """\
name: {name}
command: [{command}]
resources: {{nodes: 2, tasks_per_node: 2, cpus_per_task: 1, time: 10m}}
"""

__all__ = ["pbs"]


@pytest.fixture
def user(pbs: RunningPbs) -> User:
    (pbs.work / "ranks.py").write_text(RANKS)
    return User(folder=pbs.work, environment=dict(os.environ), profile=pbs.profile)


def job(user: User, name: str, *command: str) -> str:
    words = ", ".join(f'"{word}"' for word in command)
    (user.folder / f"{name}.yaml").write_text(JOB.format(name=name, command=words))
    return f"{name}.yaml"


def submit(user: User, file: str, *words: str) -> str:
    done = user.submit(file, *words, site="lab-pbs")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def runs(user: User, name: str) -> list[dict[str, str]]:
    done = user.hpctrain("status", name, "--json")
    found: list[dict[str, str]] = json.loads(done.stdout)["runs"]
    return found


def test_two_nodes_train_together_and_the_logs_are_read(user: User) -> None:
    submit(user, job(user, "two", "python", "ranks.py", "0"), "--wait")
    (run,) = runs(user, "two")
    assert (run["state"], run["nodes"]) == ("COMPLETED", "pbs1,pbs2")
    logs = user.hpctrain("logs", "two").stdout
    assert {f"rank {rank} of 4 pbs{rank // 2 + 1}" for rank in range(4)} <= {
        line.partition(": ")[2] or line for line in logs.splitlines()
    } | set(logs.splitlines())


def test_a_rank_that_fails_is_named_and_its_run_is_retried(user: User) -> None:
    fails = "[ $RANK != 3 ] || exit 9; exec sleep 600"
    done = user.submit(job(user, "bad", "bash", "-c", fails), "--wait", site="lab-pbs")
    assert done.returncode == 1
    (run,) = runs(user, "bad")
    assert run["state"] == "FAILED"
    assert "rank 3" in user.hpctrain("status", "bad").stdout
    assert user.hpctrain("retry", "bad").returncode == 0
    wait_for(
        lambda: [one["state"] for one in runs(user, "bad")] == ["FAILED", "FAILED"], every_s=0.3
    )


def test_a_running_job_is_cancelled_and_leaves_no_process(user: User, pbs: RunningPbs) -> None:
    submit(user, job(user, "long", "sleep", "3001"))
    user.wait("long", "RUNNING")
    wait_for(lambda: _sleeps(pbs.folder))
    done = user.hpctrain("cancel", "long")
    assert done.returncode == 0, done.stderr
    assert runs(user, "long")[0]["state"] == "CANCELLED"
    wait_for(lambda: not _sleeps(pbs.folder))


def _sleeps(folder: Path) -> bool:
    """Whether a job of a small PBS has its program."""
    processes = (path for path in Path("/proc").iterdir() if path.name.isdigit())
    return any("3001" in _words(path) and _is_of(path, str(folder)) for path in processes)


def _words(path: Path) -> list[str]:
    try:
        return (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _is_of(path: Path, folder: str) -> bool:
    try:
        return f"PBS_NODEFILE={folder}/".encode() in (path / "environ").read_bytes()
    except OSError:
        return False
