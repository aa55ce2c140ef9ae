"""Traps of docs/linting.md that only a real Slurm can show."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Slurm
from tests.end_to_end import studies
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]
NOTE = "a,b 'c' \"d\" $HOME\nnext"
SHOW = """\
import json, os, socket
kept = {k: v for k, v in os.environ.items() if k.startswith(("SLURM_", "CUDA_", "RANK", "NOTE"))}
cores = len(os.sched_getaffinity(0))
print(json.dumps({**kept, "cores": cores, "host": socket.gethostname()}))
"""
LISTEN = """\
import os, pathlib, socket, time
with socket.create_server(("", int(os.environ["MASTER_PORT"]))):
    print(os.environ["MASTER_PORT"], flush=True)
    while not pathlib.Path("go").exists():
        time.sleep(0.05)
"""
COUNT = """\
import pathlib, signal, time
signal.signal(signal.SIGUSR2, lambda *_: print("warned", flush=True))
print("ready", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.05)
"""


def job(user: User, name: str, program: str, launcher: str, **resources: Any) -> str:
    """Write a job that runs a Python program; return the file's name."""
    (user.folder / f"{name}.py").write_text(program)
    script, env = f"exec python {name}.py", {"NOTE": NOTE}
    spec = studies.job(name, script, launcher=launcher, resources=resources, env=env)
    return user.write(f"{name}.yaml", spec)


def ranks(user: User, word: str) -> list[dict[str, Any]]:
    """Return what each rank has printed, in order."""
    logs = user.logs(word)
    return [json.loads(logs[name]) for name in sorted(logs) if name.startswith("rank-")]


def test_what_each_rank_finds(user: User) -> None:
    """F5 memory, F7 GPUs, F14 numbers, F17 to F19 values."""
    size = {"nodes": 2, "tasks_per_node": 2, "cpus_per_task": 3, "gpus_per_node": 2, "mem": "300M"}
    file = job(user, "show", SHOW, "srun", **size)
    done = user.hpctrain("submit", file, "--site", "lab", "--wait", SBATCH_EXPORT="NONE")
    assert done.returncode == 0, done.stderr + str(user.logs("show"))
    found = ranks(user, "show")
    assert [rank["RANK"] for rank in found] == ["0", "1", "2", "3"]
    assert [rank["SLURM_NODEID"] for rank in found] == ["0", "0", "1", "1"]
    assert {rank["SLURM_CPUS_PER_TASK"] for rank in found} == {"3"}
    assert {rank["SLURM_MEM_PER_NODE"] for rank in found} == {"300"}
    assert {rank["CUDA_VISIBLE_DEVICES"] for rank in found} == {"0,1"}
    assert {rank["NOTE"] for rank in found} == {NOTE}
    assert {rank["SLURM_EXPORT_ENV"] for rank in found} == {"ALL"}


def test_the_end_of_a_cancelled_job_is_noted_at_once(user: User, slurm: Slurm) -> None:
    """F28: before Slurm itself kills what is left."""
    file = job(user, "wait", COUNT, "srun", tasks_per_node=2, cpus_per_task=3)
    assert user.submit(file).returncode == 0
    user.says("wait", "ready", "rank-1.out")
    row = user.run("wait")
    slurm("scancel", row["job"])
    status = Path(user.folder, row["folder"], "status.json")
    # What has not ended by itself when KillWait is over, the script too, writes nothing any more.
    wait_for(lambda: json.loads(status.read_text())["ended"] is not None)
    ended = json.loads(status.read_text())
    assert (ended["exit_code"], ended["failure"]) == (143, None)


def test_two_jobs_on_one_node_do_not_share_a_port(user: User, slurm: Slurm) -> None:
    """F11: with two ports, every second job begins at the same one."""
    user.site("few", "  host: first-host\n", "  host: first-host\n  ports: 2\n")
    for name in ("first", "second"):
        file = job(user, name, LISTEN, "srun")
        assert user.submit(file, site="few").returncode == 0
        user.says(name, "\n", "rank-0.out")
        # A number in between is used up.
        slurm("sbatch", "--hold", "--output=/dev/null", "--wrap=true")
    (user.folder / "go").touch()
    rows = [user.run(name) for name in ("first", "second")]
    assert int(rows[1]["job"]) - int(rows[0]["job"]) == 2
    for name in ("first", "second"):
        user.wait(name, "COMPLETED")
    assert rows[0]["nodes"] == rows[1]["nodes"]
    ports = [user.logs(name)["rank-0.out"] for name in ("first", "second")]
    assert len(set(ports)) == 2


@pytest.mark.mpi
def test_mpirun_places_ranks_as_asked_and_binds_none(user: User) -> None:
    """F33: Open MPI would give each of two ranks one core."""
    size = {"nodes": 2, "tasks_per_node": 1, "cpus_per_task": 2}
    done = user.submit(job(user, "mpi", SHOW, "mpirun", **size), "--wait")
    assert done.returncode == 0, done.stderr
    found = ranks(user, "mpi")
    assert [rank["RANK"] for rank in found] == ["0", "1"]
    assert len({rank["host"] for rank in found}) == 2
    assert {rank["NOTE"] for rank in found} == {NOTE}
    assert {rank["cores"] for rank in found} == {len(os.sched_getaffinity(0))}
