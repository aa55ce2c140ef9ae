"""F23 to F31: failures, exit codes, logs, signals and what is on record at the end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.data_folders import template_folder
from hpc_train.scripts.render import render_script
from hpc_train.slurm.sbatch import batches
from tests.scripts.job_starts import save
from tests.slurm.made import runs
from tests.submissions.waiting import LIMIT_S, wait_for
from tests.traps.conftest import Execute
from tests.traps.made import BELOW_SRUN, LAUNCHERS, argv, directives, planned, script, small

# Rank 1 fails, the other is told to end and ends by the signal.
FAIL = '[ "$RANK" = 0 ] || { sleep 0.3; exit 7; }; exec sleep 30'
STUB = """\
#!/bin/bash
while [ "$1" != --no-python ]; do shift; done
shift
for name in USR1 USR2; do kill -s "$name" $$; done
RANK=0 exec "$@"
"""
# A rank has a handler of its own, although the agent above it ignores the signal.
HANDLER = (
    'import os, signal; signal.signal(signal.SIGUSR2, lambda *_: print("warned"));'
    "os.kill(os.getpid(), signal.SIGUSR2)"
)


def status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "status.json").read_text())
    return found


@pytest.mark.parametrize("launcher", BELOW_SRUN)
def test_f23_a_dead_rank_ends_the_step(launcher: str) -> None:
    assert " --kill-on-bad-exit=1 --wait=60 " in argv(launcher)


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["--kill-on-bad-exit=0"], "--wait=60 --kill-on-bad-exit=0"),
        (["-K0", "-W", "5"], "-K0 -W 5"),
        (["-K", "--wait", "5"], "-K --wait 5"),
        (["-W5", "--label"], "--kill-on-bad-exit=1 -W5 --label"),
    ],
)
def test_f23_who_names_an_option_has_decided(words: list[str], left: str) -> None:
    """In the site's srun_args, or in the job's launcher_args."""
    launchers = {"default": "srun", "allowed": LAUNCHERS, "srun_args": words}
    for given in (argv(site={"launchers": launchers}), argv(launcher_args=words)):
        assert f" --cpus-per-task=8 {left} bash -c " in given


def test_f23_an_agent_that_leaves_does_not_end_an_elastic_job() -> None:
    """But where all nodes are needed, it does."""
    launchers = {"default": "srun", "allowed": LAUNCHERS, "srun_args": ["-K1"]}
    for site in ({}, {"launchers": launchers}):
        last = argv("torchrun", elastic={"min_nodes": 1}, site=site).split(" bash ")[0].split()
        assert last[-3:] == ["--no-kill", "--kill-on-bad-exit=0", "--wait=0"]
        assert "--kill-on-bad-exit=1" not in last
    assert " --kill-on-bad-exit=1 --wait=60 " in argv("torchrun", elastic={"max_restarts": 1})


def test_f24_the_guilty_rank_is_on_record(execute: Execute, tmp_path: Path) -> None:
    done = execute(small(FAIL), tmp_path)
    assert done.returncode != 0
    failure = status(tmp_path)["failure"]
    assert (failure["rank"], failure["host"], failure["exit_code"]) == (1, "node1", 7)


@pytest.mark.parametrize("code", [0, 7])
def test_f25_the_job_ends_as_its_ranks_did(execute: Execute, tmp_path: Path, code: int) -> None:
    plan = small(f"exit {code}", tasks=1)
    text = render_script(plan).text
    assert "\nset -uo pipefail\n" in text
    command = text[text.index("\nhpctrain_run ") :].partition("\nhpctrain_exit")[0]
    assert "\nhpctrain_run srun " in command
    assert "| " not in command
    assert execute(plan, tmp_path).returncode == code
    assert status(tmp_path)["exit_code"] == code


def test_f26_no_attempt_erases_the_log_of_another(execute: Execute, tmp_path: Path) -> None:
    plan = small('echo "attempt $SLURM_RESTART_COUNT"', tasks=1)
    for count in ("0", "1"):
        assert execute(plan, tmp_path, SLURM_RESTART_COUNT=count).returncode == 0
    log = (tmp_path / "logs" / "rank-0.out").read_text()
    assert log == "attempt 0\n\nhpctrain: restart 1\nattempt 1\n"
    assert status(tmp_path)["restart_count"] == 1
    for launcher in LAUNCHERS:
        assert "#SBATCH --open-mode=append" in directives(script(launcher))


def test_f26_f27_elements_of_an_array_stand_for_themselves(tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1", "p-r2")
    (batch,) = batches(made, 1001)
    assert batch.output.endswith("/p-r%a/logs/job.out")
    assert [batch.native_id(run, "40") for run in made] == ["40_1", "40_2"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f27_a_job_does_not_queue_itself_again(launcher: str) -> None:
    text = script(launcher)
    assert not re.search("requeue [^j]|scontrol (requeue|update)|ExcNodeList", text)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f28_the_ranks_run_beside_the_script(launcher: str) -> None:
    text = script(launcher)
    assert text.count("\nhpctrain_run ") == 1


def test_f28_the_end_is_passed_on_at_once(execute: Execute, tmp_path: Path) -> None:
    plan = small("echo up; exec sleep 600", tasks=1)
    copy = tmp_path / "job.sbatch"
    save(render_script(plan), copy)
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "localhost"}
    words = ["bash", str(copy), str(tmp_path)]
    with subprocess.Popen(words, env=environment, cwd=tmp_path) as process:
        log = tmp_path / "logs" / "rank-0.out"
        wait_for(lambda: log.exists() and log.read_text() == "up\n")
        process.send_signal(signal.SIGTERM)
        # Long before the program would end by itself.
        assert process.wait(timeout=LIMIT_S) != 0
    found = status(tmp_path)
    assert (found["ended"] is None, found["failure"]) == (False, None)


def test_f29_an_agent_does_not_die_of_a_warning(execute: Execute, tmp_path: Path) -> None:
    agent = tmp_path / "bin" / "torchrun"
    agent.write_text(STUB)
    agent.chmod(0o755)
    done = execute(small(f"exec {sys.executable} -c '{HANDLER}'", "torchrun", tasks=1), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--signals-to-handle" not in argv("torchrun")
    assert (tmp_path / "logs" / "rank-0.out").read_text() == "warned\n"


@pytest.mark.parametrize("runtime", ["apptainer", "pyxis", "podman-hpc"])
@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_f30_nothing_in_an_image_needs_slurms_commands(launcher: str, runtime: str) -> None:
    boxed = {"site": {"containers": {"runtime": runtime}}, "container": {"image": "/i/t.sif"}}
    text = script(launcher, **boxed)
    wrappers = re.findall(r"<<'WRAPPER'\n(.*?)\nWRAPPER\n", text, re.DOTALL)
    wrappers += re.findall("^rank_wrapper=.*", text, re.M)
    assert len(wrappers) == (2 if launcher == "torchrun" else 1)
    wrappers.append((template_folder() / "runtime.sh").read_text().partition("it is bash")[0])
    assert not [word for word in ("scontrol", "squeue", "srun", "sbatch") if word in str(wrappers)]


@pytest.mark.parametrize("code", [0, 3])
def test_f31_the_end_is_on_record_without_accounting(
    execute: Execute, tmp_path: Path, code: int
) -> None:
    plan = planned(
        resources={"tasks_per_node": 1, "cpus_per_task": 1}, command=["bash", "-c", f"exit {code}"]
    )
    before = time.time()
    execute(plan, tmp_path, SLURM_JOB_ID="12", SLURM_RESTART_COUNT="2")
    found = status(tmp_path)
    assert (found["exit_code"], found["restart_count"], found["job"]) == (code, 2, "12")
    assert before - 1 < found["started"] <= found["ended"]
