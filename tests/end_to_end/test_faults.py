"""Controllers that are gone for a while, nodes that die, people who are killed or in each other's
way: nothing is lost, and nothing runs twice.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Hpctrain, Slurm
from tests.end_to_end import daemons
from tests.end_to_end.studies import job, study
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]


@pytest.fixture
def damage(user: User, hpctrain: Hpctrain) -> Iterator[None]:
    """Whatever a test does to the daemons, the next one has a whole lab."""
    yield
    for word in ("down", "up"):
        done = hpctrain(word)
        assert done.returncode == 0, done.stderr


def test_the_controller_is_gone_for_a_while(
    user: User, slurm: Slurm, damage: None, tmp_path: Path
) -> None:
    script = "touch begun; until [ -e go ]; do sleep 0.1; done; touch first"
    # Without srun: that of Slurm 26.05 ends a step only when the controller answers.
    user.submit(user.write("job.yaml", job("j", script, launcher="single")))
    wait_for((tmp_path / "begun").exists)
    daemons.stop_controller()
    user.write("second.yaml", job("after-it", "touch second"))
    with user.running("submit", "second.yaml", "--site", "lab") as (process, said):
        # Slurm's commands themselves try for seconds before they give up.
        wait_for(lambda: "Slurm does not answer" in said.read_text())
        (tmp_path / "go").touch()
        wait_for((tmp_path / "first").exists)
        # The job's own file says more than a controller that is not there.
        user.wait("j", "COMPLETED")
        assert user.run("j")["job"] != ""
        daemons.start_controller()
        assert process.wait(timeout=240) == 0, said.read_text()
    user.wait("after-it", "COMPLETED")
    names = slurm("squeue", "--noheader", "--states=all", "--format=%j").split()
    assert names.count("after-it") == 1


def test_two_people_submit_the_same_study(user: User, slurm: Slurm) -> None:
    user.write("study.yaml", study("shared"))
    argv = [sys.executable, "-m", "hpc_train", "submit", "study.yaml", "--site", "lab"]
    both = [
        subprocess.Popen(
            argv, cwd=user.folder, env=user.environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=240)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(len(run_ids) for run_ids in said) == [0, 6]
    elements = slurm("squeue", "--noheader", "--states=all", "--array", "--format=%i %j").split()
    assert elements.count("shared") == 6
    user.wait_all("shared", "COMPLETED")


def test_killed_between_sbatch_and_its_answer(user: User, slurm: Slurm, tmp_path: Path) -> None:
    """Whoever submits is killed when sbatch has done its work and before anybody reads the id."""
    programs = tmp_path / "bin"
    programs.mkdir()
    sbatch = programs / "sbatch"
    sbatch.write_text(
        '#!/bin/sh\n/usr/bin/env -i PATH="$REAL" SLURM_CONF="$SLURM_CONF" \\\n'
        '  sbatch "$@" >/dev/null\nkill -9 $PPID\nsleep 1\n'
    )
    sbatch.chmod(0o755)
    path = user.environment["PATH"]
    user.write("study.yaml", study("cut", before="until [ -e go ]; do sleep 0.1; done\n"))
    killed = user.hpctrain(
        "submit", "study.yaml", "--site", "lab", PATH=f"{programs}:{path}", REAL=path
    )
    assert killed.returncode == -9
    found = [row for row in user.runs("cut").values() if row["job"]]
    # The repetitions of the first point were handed over, and their job is known all the same.
    assert len(found) == 2
    assert {row["state"] for row in found} <= {"PENDING", "RUNNING"}
    (tmp_path / "go").touch()
    rest = user.submit("study.yaml", "--wait")
    assert rest.returncode == 0, rest.stderr
    assert len(rest.stdout.split()) == 4
    rows = user.all_completed("cut")
    assert len(rows) == 6
    assert {row["attempt"] for row in rows.values()} == {1}
    elements = slurm("squeue", "--noheader", "--states=all", "--array", "--format=%j").split()
    assert elements.count("cut") == 6
