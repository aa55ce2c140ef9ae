"""What a user sees of a run while it waits, runs, is queued again and ends."""

import pytest

from tests.conftest import Slurm
from tests.end_to_end.studies import job
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]


def test_a_run_that_waits(user: User, slurm: Slurm) -> None:
    reason = "it is next, and waits for free nodes"
    blocker = slurm("sbatch", "--parsable", "-N4", "--exclusive", "-o/dev/null", "--wrap=sleep 999")
    wait_for(lambda: slurm("squeue", "-h", "-o%T") == "RUNNING\n")
    assert user.submit(user.write("job.yaml", job("late", "echo here"))).returncode == 0
    user.until("late", lambda row: bool(row["reason"] == reason))
    row = user.run("late")
    assert (row["state"], row["started"], row["exit_code"]) == ("PENDING", None, None)
    assert reason in user.hpctrain("status", "late").stdout
    logs = user.hpctrain("logs", "late")
    assert (logs.returncode, logs.stdout) == (2, "")
    assert logs.stderr.startswith("hpctrain: late: no log yet")
    slurm("scancel", blocker.strip())
    followed = user.hpctrain("logs", "-f", "late")
    assert followed.returncode == 0
    assert "here" in followed.stdout.splitlines()
    assert user.run("late")["state"] == "COMPLETED"


INNER = "env -0 | grep -z -e ^SLURM_ -e ^RANK= | tr '\\0' '\\n' | sort"
# What this shell of a job has set, and what a user may have set before.
OUTER = """\
export SLURM_CPU_BIND=quiet,mask_cpu:0x1 SLURM_OF_OLD=1 RANK=9 SBATCH_PARTITION=long
python -m hpc_train submit inner.yaml --site lab
"""


def test_from_inside_a_job(user: User) -> None:
    user.write("inner.yaml", job("inner", INNER, tasks=2))
    user.write("outer.yaml", job("outer", OUTER, resources={"cpus_per_task": 3}))
    done = user.submit("outer.yaml", "--wait")
    assert done.returncode == 0, done.stderr
    outer = user.run("outer")["job"]
    said = user.logs("outer")["rank-0.out"]
    assert f"this shell is inside Slurm job {outer}; " in said
    assert "SLURM_" in said.partition(f"job {outer}; ")[2].partition("\n")[0]
    assert "at lab: partition long ($SBATCH_PARTITION)" in said

    followed = user.hpctrain("logs", "-f", "inner")
    assert followed.returncode == 0
    row = user.run("inner")
    assert row["state"] == "COMPLETED"
    logs = user.logs("inner")
    for rank in (0, 1):
        there = dict(line.split("=", 1) for line in logs[f"rank-{rank}.out"].splitlines())
        assert there["SLURM_JOB_ID"] == row["job"] != outer
        assert there["SLURM_NTASKS"] == "2"
        assert there["SLURM_CPUS_PER_TASK"] == "1"
        assert there["SLURM_JOB_PARTITION"] == "long"
        assert there["SLURM_JOB_NAME"] == "inner"
        assert there["RANK"] == str(rank)
        assert "SLURM_OF_OLD" not in there
        assert "mask_cpu:0x1" not in there.get("SLURM_CPU_BIND", "")
