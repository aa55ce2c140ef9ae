"""A launcher that is not there is named before anything starts."""

from __future__ import annotations

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


def test_setup_may_bring_the_launcher(
    plan: Plans, execute: Execute, tmp_path: Path, programs: Path
) -> None:
    """`module load` adds to PATH."""
    job = plan(
        "slurm-generic",
        launcher="srun",
        command=["touch", "ran"],
        resources=resources("srun"),
        setup=['PATH="$MODULE:$PATH"'],
    )
    done = execute(job, tmp_path, PATH=str(programs), MODULE=str(tmp_path / "bin"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "ran").exists()


def test_behind_srun_torchrun_needs_its_python(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    python = tmp_path / "no such $(touch pwned) 'folder'" / "python3"
    job = plan(
        "slurm-generic",
        launcher="torchrun",
        command=[str(python), "x.py"],
        resources=resources("torchrun"),
    )
    done = execute(job, tmp_path)
    assert done.returncode == 127
    assert done.stderr.startswith(
        f"hpctrain: {python} does not exist on {HOST}; load its module with setup: "
    )
    assert not (tmp_path / "pwned").exists()


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


@pytest.mark.parametrize(
    "case",
    [
        ("--container-image=x.sqsh", False),
        ("--environment=torch", False),
        ("--kill-on-bad-exit=1", True),
    ],
)
def test_in_a_container_only_srun_is_looked_for(
    plan: Plans, execute: Execute, tmp_path: Path, programs: Path, case: tuple[str, bool]
) -> None:
    """The program's own words do not count; the python is not on this host."""
    word, checked = case
    site = tmp_path / "boxed.yaml"
    site.write_text(
        "schema: 1\nname: boxed\ndescription: d\nscheduler: slurm\nlaunchers: {default: torchrun, "
        f"allowed: [torchrun], srun_args: ['{word}']}}\n"
    )
    job = plan(
        str(site),
        command=["/in/the/box/python", "x.py", "--container=no"],
        resources=resources("torchrun"),
    )
    done = execute(job, tmp_path)
    assert done.returncode == 127
    assert ("hpctrain: /in/the/box/python does not exist" in done.stderr) == checked
    assert ("No such file" in done.stderr) != checked
    done = execute(job, tmp_path, PATH=str(programs))
    assert done.stderr.startswith(f"hpctrain: srun is not on PATH on {HOST}; ")
