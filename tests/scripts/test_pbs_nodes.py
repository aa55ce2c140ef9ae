"""The program that starts a process on each node of a job of PBS, with a pbs_tmrsh as the real one.

The real one passes on no variable, prints nothing of the command, and ends with its exit code.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from hpc_train.base.data_folders import data_file

GOLDEN = Path(__file__).parents[1] / "golden" / "tundra" / "torchrun-2.sbatch"
TMRSH = """#!/bin/bash
node=$1; shift
grep -qx "$node" "$PBS_NODEFILE" || exit 255
exec env -i PATH="$PATH" PBS_JOBID="$PBS_JOBID" PBS_TASKNUM=7 "$@" >>"$JOB_OUTPUT" 2>&1
"""


class Job(NamedTuple):
    """A folder with two nodes and a pbs_tmrsh."""

    folder: Path

    def run(self, command: str, nodes: str = "n1\nn1\nn2\n") -> subprocess.CompletedProcess[str]:
        """Run a command on each node; its output is read through a pipe."""
        (self.folder / "nodes").write_text(nodes)
        (self.folder / "token").write_text("t0p")
        (export,) = re.findall("^export HPCTRAIN_NODES=.*", GOLDEN.read_text(), re.M)
        export = export.replace("/home/me/.token", str(self.folder / "token"))
        text = f'{export}\neach_node=$(<"{data_file("in_job", "each_node.sh")}")'
        script = f'{text}\nbash -c "$each_node" each_node bash -c {command!r} word "a b"\n'
        environment = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "PBS_NODEFILE": str(self.folder / "nodes"),
            "PBS_JOBID": "12.server",
            "PBS_TASKNUM": "1",
            "JOB_OUTPUT": str(self.folder / "job.out"),
            "HPCTRAIN_RUN": str(self.folder),
            "MINE": "two\nlines",
            "TOKEN": "t0p",
        }
        return subprocess.run(
            ["bash", "-c", script],
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.folder,
            timeout=240,
        )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    program = tmp_path / "pbs_tmrsh"
    program.write_text(TMRSH)
    program.chmod(0o755)
    return Job(tmp_path)


def test_each_node_has_the_variables_of_the_script_and_its_own(job: Job) -> None:
    words = '"$HPCTRAIN_NODE $HPCTRAIN_NODE_RANK $PBS_TASKNUM $TOKEN ${MINE@Q} $PWD $1"'
    done = job.run(f"echo {words}")
    expected = [f"n{n + 1} {n} 7 t0p $'two\\nlines' {job.folder} a b" for n in (0, 1)]
    assert (done.returncode, sorted(done.stdout.splitlines()), done.stderr) == (0, expected, "")


def test_no_file_with_variables_or_a_secret_is_left(job: Job) -> None:
    done = job.run("grep -l t0p .pbs-* ; true")
    assert (done.returncode, done.stdout) == (0, "")
    assert list(job.folder.glob(".pbs-*")) == []


def test_a_node_that_fails_ends_the_others_with_its_exit_code(job: Job) -> None:
    done = job.run('[ "$HPCTRAIN_NODE" = n1 ] && exit 9; sleep 300')
    assert done.returncode == 9


def test_a_job_with_fewer_nodes_than_requested_is_not_started(job: Job) -> None:
    done = job.run("true", nodes="n1\nn1\n")
    assert done.returncode == 1
    assert "the nodes n1, but it requested 2; -l place=scatter" in done.stderr


def test_a_daemon_that_ssh_starts_has_what_setup_exports(tmp_path: Path) -> None:
    text = GOLDEN.with_name("mpirun-2.sbatch").read_text("utf-8")
    block = text.partition("export.\n")[2].partition("\nset -uo")[0]
    program = tmp_path / "of-venv"
    program.write_text('#!/bin/bash\necho "$MINE|$LINES2|${LOGIN-unset}|$LD_LIBRARY_PATH"\n')
    program.chmod(0o755)
    script = f"""
    export PATH={tmp_path}:$PATH MINE='a b' LINES2=$'x\\ny'
    {block}
    given=()
    for name in "${{mpi_exports[@]}}"; do [ "$name" = -x ] || given+=("$name=${{!name}}"); done
    exec env -i "${{given[@]}}" of-venv
    """
    environment = {"PATH": os.environ["PATH"], "LOGIN": "x", "MINE": "y", "LD_LIBRARY_PATH": "/l"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("a b|x\ny|unset|/l\n", "")
