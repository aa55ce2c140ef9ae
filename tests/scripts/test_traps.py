"""Traps of docs/linting.md that only a script that runs shows; the others are in golden and net."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.plans.launchers.made import words

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
ODD = "rack[1-2,07]-n[3],login"
# An agent that Slurm warns, with a rank that has a handler of its own.
AGENT = """\
#!/bin/bash
while [ "$1" != --no-python ]; do shift; done
shift
for name in USR1 USR2; do kill -s "$name" $$; done
RANK=0 exec "$@"
"""
HANDLER = (
    'import os, signal; signal.signal(signal.SIGUSR2, lambda *_: print("warned"));'
    "os.kill(os.getpid(), signal.SIGUSR2)"
)


def small(plan: Plans, *command: str, **keys: object) -> LaunchPlan:
    size = {"tasks_per_node": 2, "cpus_per_task": 1}
    given = {"launcher": "srun", "resources": size, **keys}
    return plan("slurm-generic", command=command, **given)


def test_f12_f15_f18_scontrol_reads_the_nodes_and_ranks_keep_their_environment(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.write_text(f'#!/bin/bash\n[ "$3" = "{ODD}" ] && printf "first\\nsecond\\n"\n')
    given = {"SLURM_JOB_NODELIST": ODD, "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.9"}
    job = small(plan, "bash", "-c", 'echo "$MASTER_ADDR $SLURM_EXPORT_ENV"')
    done = execute(job, tmp_path, SLURM_EXPORT_ENV="NONE", **given)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "rank-1.out").read_text() == "first ALL\n"


@pytest.mark.usefixtures("execute")
def test_f21_the_copy_that_slurm_runs_finds_everything(plan: Plans, tmp_path: Path) -> None:
    """As slurmd does: a copy elsewhere, in the folder of the submission."""
    spool, folder, run = (tmp_path / name for name in ("spool", "project", "run"))
    for path in (spool, folder, run):
        path.mkdir()
    (folder / "train.sh").write_text("echo here >here\n")
    made = render_script(small(plan, "bash", "-c", ". ./train.sh"))
    (spool / "slurm_script").write_text(made.text)
    for name, text in made.beside:
        (run / name).write_text(text)
    done = subprocess.run(
        ["bash", str(spool / "slurm_script"), str(run)],
        cwd=folder,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "localhost"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "here").exists()
    assert (run / "status.json").exists()
    assert [path.name for path in spool.iterdir()] == ["slurm_script"]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["--kill-on-bad-exit=0"], "--wait=60 --kill-on-bad-exit=0"),
        (["-K0", "-W", "5"], "-K0 -W 5"),
        (["-K", "--wait", "5"], "-K --wait 5"),
        (["-W5", "--label"], "--kill-on-bad-exit=1 -W5 --label"),
    ],
)
def test_f23_who_names_an_option_has_decided(plan: Plans, given: list[str], left: str) -> None:
    assert f" {left} bash -c " in words(small(plan, "true", launcher_args=given).launch)


def test_f29_an_agent_does_not_die_of_a_warning(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    agent = tmp_path / "bin" / "torchrun"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    command = f"exec {sys.executable} -c '{HANDLER}'"
    done = execute(small(plan, "bash", "-c", command, launcher="torchrun"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "rank-0.out").read_text() == "warned\n"
