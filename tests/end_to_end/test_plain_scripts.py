"""`render --plain`, as a user hands it to sbatch: the ranks, the exit code, the comment."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Slurm
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
COMMENT = 'it\'s "run 3" \\ see #4'
SAY = 'echo "rank $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT, $SLURMD_NODENAME"; exit $1'


def submit(user: User, folder: Path, launcher: str, code: int) -> subprocess.CompletedProcess[str]:
    sizes = {"nodes": 2, "tasks_per_node": 2, "cpus_per_task": 1, "gpus_per_node": 0}
    resources = {**sizes, "time": "2m"}
    command = ["bash", "-c", SAY, "say", str(code)]
    job = {"name": "plain", "command": command, "comment": COMMENT, "resources": resources}
    file = user.write("job.yaml", {**job, "launcher": launcher})
    rendered = user.hpctrain("render", file, "--site", "lab", "--plain")
    assert rendered.returncode == 0, rendered.stderr
    (folder / "job.sbatch").write_text(rendered.stdout)
    return subprocess.run(
        ["sbatch", "--wait", "--parsable", "--output=out", "job.sbatch"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize("launcher", ["srun", pytest.param("mpirun", marks=pytest.mark.mpi)])
def test_slurm_runs_a_plain_script(user: User, slurm: Slurm, tmp_path: Path, launcher: str) -> None:
    done = submit(user, tmp_path, launcher, 0)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out").read_text()
    found = re.findall(r"^rank (\d) of 4 at (\S+), (\S+)$", text, re.MULTILINE)
    assert sorted(rank for rank, _, _ in found) == ["0", "1", "2", "3"]
    assert len({address for _, address, _ in found}) == 1
    job = f"--job={done.stdout.strip()}"
    shown = slurm("squeue", "--states=all", "--noheader", "--format=%k", job)
    assert shown.strip() == COMMENT


def test_the_exit_code_of_the_ranks_is_that_of_the_job(user: User, tmp_path: Path) -> None:
    assert submit(user, tmp_path, "srun", 7).returncode == 7
