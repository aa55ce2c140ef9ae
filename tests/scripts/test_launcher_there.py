"""A launcher that is not there is named before anything starts."""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.plans.plan import LaunchPlan

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
# What a script itself needs of PATH, beside a launcher.
NEEDED = ("bash", "cat", "date", "head", "id", "mkdir", "mv", "rm", "sed", "sleep", "tail", "touch")
HOST = socket.gethostname()


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder for PATH that has no launcher."""
    folder = tmp_path / "few programs"
    folder.mkdir()
    for name in NEEDED:
        (folder / name).symlink_to(str(shutil.which(name)))
    (folder / "scontrol").write_text("#!/bin/bash\necho localhost\n")
    (folder / "scontrol").chmod(0o755)
    return folder


def resources(launcher: str) -> dict[str, object]:
    return {"tasks_per_node": 1 if launcher == "single" else 2, "cpus_per_task": 1, "time": "5m"}


@pytest.mark.parametrize(
    "case",
    [
        ("slurm-generic", "srun", "srun"),
        ("slurm-generic", "mpirun", "mpirun"),
        ("slurm-generic", "spawn", "srun"),
        ("slurm-generic", "torchrun", "srun"),
        ("local", "mpirun", "mpirun"),
        ("local", "torchrun", "python"),
    ],
)
def test_a_launcher_that_is_missing(
    plan: Plans, execute: Execute, tmp_path: Path, programs: Path, case: tuple[str, str, str]
) -> None:
    site, launcher, program = case
    job = plan(site, launcher=launcher, command=["python", "x.py"], resources=resources(launcher))
    done = execute(job, tmp_path, PATH=str(programs))
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == (
        f"hpctrain: {program} is not on PATH on {HOST}; load its module with "
        "setup: [module load …] in the job or the "
        "site profile\n"
    )
    found = json.loads((tmp_path / "status.json").read_text())
    assert (found["exit_code"], found["failure"]) == (127, None)


@pytest.mark.parametrize("site", ["local", "slurm-generic"])
def test_a_python_without_torch(
    plan: Plans, execute: Execute, tmp_path: Path, programs: Path, site: str
) -> None:
    for name in ("srun", "scontrol"):
        shutil.copy(tmp_path / "bin" / name, programs / name)
    python = programs / "python"
    # -S leaves out site-packages, so that this python has no torch.
    python.write_text(f'#!/bin/bash\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    job = plan(
        site, launcher="torchrun", command=["python", "x.py"], resources=resources("torchrun")
    )
    done = execute(job, tmp_path, PATH=str(programs))
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr.startswith(f"hpctrain: python ({python}) on {HOST} has no torch; install")
