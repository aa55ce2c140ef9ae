"""lint refuses the values that sbatch refuses, and no value that it accepts."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hpc_train.lab.daemons import slurm_version
from hpc_train.lint.directives import value_forms
from hpc_train.lint.lint_script import lint_script
from tests.lab.conftest import Slurm


def values() -> dict[str, dict[str, list[str]]]:
    """Read the table: an option, and below it the values that sbatch 22.05 accepts or refuses."""
    found: dict[str, dict[str, list[str]]] = {}
    name = ""
    for line in (Path(__file__).parent / "option_values.txt").read_text().splitlines():
        word, *rest = line.split()
        if line.startswith(" "):
            found[name].setdefault(word, []).extend(rest)
        else:
            name = word
            found[name] = {}
    return found


VALUES = values()
# Values of a later Slurm, which lint accepts, and the version from which on sbatch does.
LATER = {
    "--nodes=1,3": "23.11", "--exclusive=topo": "24.05", "--signal=SIGCHLD": "24.11",
    "--signal=B:PIPE@60": "24.11", "--gpu-bind=map:0": "24.11", "--gpu-bind=mask:0x3": "24.11",
    "--gres-flags=multiple-tasks-per-sharing": "23.11",
}  # fmt: skip
# These need a slurm.conf that a lab does not have.
ELSEWHERE = ("--gres-flags=one-task-per-sharing", "--requeue=expedite")
# sbatch accepts them from a version on; lint refuses them, as earlier versions do.
TOLERATED = {
    "--gres=gpu:2,": "24.11", "--gres=,gpu:2": "24.11", "--gres=gpu:2,,": "24.11",
    "--gres=": "24.11", "--gres-flags=enforce-binding,": "24.11",
    "--gres-flags=,enforce-binding": "24.11", "--partition=": "26.05",
}  # fmt: skip
# sbatch refuses them from a version on; `--signal=R:` only where nothing is preempted.
EARLIER = {
    "24.11": (
        "--signal=R:USR1@60", "--signal=BR:TERM", "--signal=RB:TERM", "--gpus=+2",
        "--gpus-per-node=+2", "--gres=gpu:+2", "--gres=gpu:a100:+1", "--gres=gres:gpu:2",
        "--gres=gres:gpu", "--cpu-freq=2.4GHz", "--cpu-freq=100x", "--cpu-freq=2400-3000",
        "--cpu-freq=100-200x", "--cpu-freq=low-high",
    ),
    "26.05": (
        "--dependency=afterok:1,afterany:2?after:3", "--mem-bind=sort", "--mem-bind=nosort",
        "--gres=gpu:4 --gpus-per-node=4",
        *(f"--get-user-env={value}" for value in VALUES["get-user-env"]["accepted"]),
        "--get-user-env=",
    ),
}  # fmt: skip
# Whole lines: option without value, ambiguous name, numbers of GPUs that contradict one another.
ACCEPTED = (
    "--exclusive", "--no-kill", "--nice", "--exclusive=", "--array=", "--dependency=", "-N2 -n4",
    "--gres=gpu:2 --gpus=4 --nodes=2", "--gres=gpu:2 --gpus=2 --nodes=1", "--gres=gpu:2 --gpus=4",
    "--gpus-per-node=2 --gpus=4 --nodes=2", "--gpus-per-node=2 --gpus=4 --nodes=1-4",
    "--gres=gpu:a100:2 --gpus=a100:4", "--gpus-per-task=1 --ntasks=4 --gpus=4",
    "--gpus=", "--gpus-per-node=", "--wait-all-nodes=", "--acctg-freq=", "--propagate=",
    "--propagate", "--get-user-env", "--get-user-env=", "--priority=", "--extra-node-info=",
    "--nodelist=", "--exclude=", "--ntasks-per-tres=1 --gpus=1", "--gres=gpu:4 --gpus-per-node=4",
    "-J=foo",
    "--cpus-per-gpu=1 --gpus=1", "--mem-per-gpu=1G --gpus=1",
)  # fmt: skip
REFUSED = (
    "--nodes", "--mail-type", "--nodes --ntasks=4", "--mem=", "--ntasks=", "--mail-type=",
    "--mem-bind=", "--cpu-freq=", "--gres=", "--profile=", "--gpu-freq=", "--delay-boot=",
    "--time=", "--time-min=", "--partition=", "--nodefile=", "--distribution=", "--distribution=,",
    "--node=2", "--nodes two", "-N two", "-c0", "-n 1k", "-dafterall:1", "-mblok",
    "--gres-flags=allow-task-sharing", "--requeue=fast",
)  # fmt: skip


def lines(kind: str) -> list[str]:
    return [f"--{name}={value}" for name, both in VALUES.items() for value in both.get(kind, ())]


def script(line: str) -> str:
    return f"#!/bin/bash\n#SBATCH {line}\ntrue\n"


def lint_refuses(line: str) -> bool:
    return any(found.severity == "error" for found in lint_script(script(line)))


def of_jobs(line: str, first: int) -> str:
    """Return a line whose --dependency names existing jobs, the first one for 1, and so on."""
    if not line.startswith("--dependency="):
        return line
    return re.sub("(?<=[:,=])[1-3]", lambda found: str(int(found[0]) - 1 + first), line)


def sbatch_refuses(line: str, folder: Path, number: int) -> bool:
    path = folder / f"{number}.sh"
    path.write_text(script(line))
    done = subprocess.run(["sbatch", "--test-only", path], capture_output=True, timeout=240)
    return done.returncode != 0


@pytest.mark.slurm
def test_sbatch_agrees(lab: Any, slurm: Slurm, tmp_path: Path) -> None:
    held = ("sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true")
    jobs = [slurm(*held, *words).strip() for words in (("--array=1",), (), ())]
    version = slurm_version()[:5]
    newer = {line for line, first in LATER.items() if version < first}
    older = {line for first, those in EARLIER.items() if version >= first for line in those}
    tolerated = {line for line, first in TOLERATED.items() if version >= first}
    tried = [*lines("accepted"), *ACCEPTED, *lines("refused"), *REFUSED, *LATER, *ELSEWHERE]
    asked = [of_jobs(line, int(jobs[0])) for line in tried]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(sbatch_refuses, asked, [tmp_path] * len(tried), range(len(tried)))
        refused = {line for line, answer in zip(tried, answers, strict=True) if answer}
    slurm("scancel", *jobs)
    assert refused == {*lines("refused"), *REFUSED, *ELSEWHERE, *newer, *older} - tolerated


@pytest.mark.parametrize("line", [*lines("accepted"), *ACCEPTED, *LATER, *ELSEWHERE])
def test_lint_accepts(line: str) -> None:
    assert not lint_refuses(line)


@pytest.mark.parametrize("line", [*lines("refused"), *REFUSED])
def test_lint_refuses(line: str) -> None:
    assert lint_refuses(line)


def test_each_form_is_tried() -> None:
    rest = {
        "ntasks-per-gpu", "gpus-per-task", "gpus-per-socket", "partition", "clusters", "nodefile",
        "time", "time-min",
    }  # fmt: skip
    assert set(value_forms()) - set(VALUES) == rest
