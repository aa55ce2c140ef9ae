"""A job that is cancelled while its ranks ask to be queued again, and a chain of jobs."""

import pytest

from tests.conftest import Slurm
from tests.end_to_end.studies import job
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]


def test_a_job_that_is_cancelled_is_not_queued_again(user: User, slurm: Slurm) -> None:
    """Its ranks end with the code that asks for it while Slurm ends the job."""
    script = "trap 'exit 75' TERM; echo ready; while :; do sleep 0.1; done"
    user.submit(user.write("gone.yaml", job("gone", script, lifecycle={})))
    user.says("gone", "ready", "rank-0.out")
    number = user.run("gone")["job"]
    slurm("scancel", number)
    user.until("gone", lambda row: row["ended"] is not None)
    wait_for(lambda: slurm("squeue", "--noheader", f"--jobs={number}", "--states=all") != "")
    states = slurm("squeue", "--noheader", f"--jobs={number}", "--states=all", "--format=%T")
    assert states.split() in (["CANCELLED"], ["COMPLETING"])
    # Slurm may still be ending the job, which then is RUNNING.
    wait_for(lambda: user.run("gone")["state"] != "RUNNING")
    assert user.run("gone")["state"] in ("CANCELLED", "FAILED")


def test_each_job_of_a_chain_begins_after_the_one_before(user: User, slurm: Slurm) -> None:
    """As docs/restart.md has it: the name and the folder of the checkpoints are the same.

    A job beside them that does not wait is refused.
    """
    # The first job saves and asks for another start, which its site does not give.
    script = 'cd "$HPCTRAIN_CHECKPOINTS" && if [ -e step ]; then mv step end; else touch step; '
    script += "until [ -e go ]; do sleep 0.1; done; exit 75; fi"
    beside = job("link", script, env={"HPCTRAIN_CHECKPOINTS": str(user.folder)})
    user.write("link.yaml", {**beside, "directives": {"dependency": "singleton"}})
    for _ in range(2):
        assert user.submit("link.yaml").returncode == 0
    wait_for((user.folder / "step").exists)
    states = "squeue", "--noheader", "--states=all", "--name=link", "--format=%T %r"
    wait_for(lambda: "PENDING Dependency" in slurm(*states))
    assert user.submit(user.write("beside.yaml", beside)).returncode == 0
    wait_for(lambda: any(row["exit_code"] == 2 for row in user.runs("link").values()))
    (refused,) = [row for row in user.runs("link").values() if row["exit_code"] == 2]
    said = (user.folder / refused["folder"] / "logs" / "job.out").read_text()
    assert "has not ended, and each would replace what the other saves" in said
    (user.folder / "go").touch()
    wait_for((user.folder / "end").exists)
    wait_for(
        lambda: {row["state"] for row in user.runs("link").values()} == {"FAILED", "COMPLETED"}
    )
