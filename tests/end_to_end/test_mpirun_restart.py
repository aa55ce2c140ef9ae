"""Ranks of mpirun on two nodes: they end when their script is asked to, and the job goes on.

mpirun hands USR1 on to its daemon on the other node. TERM ends the daemon, and with it the rank.
"""

import subprocess

import pytest

from tests.end_to_end import gated
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
