"""lint refuses the values that sbatch refuses, and no value that it accepts."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hpc_train.lint.lint_script import lint_script
from hpc_train.lint.option_values import value_forms


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
# Values of a later Slurm, which sbatch 22.05 refuses and lint does not.
LATER = (
    "--nodes=1,3", "--exclusive=topo", "--gres-flags=one-task-per-sharing",
    "--gres-flags=enforce-binding,allow-task-sharing",
)  # fmt: skip
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
)  # fmt: skip
REFUSED = (
    "--nodes", "--mail-type", "--nodes --ntasks=4", "--mem=", "--ntasks=", "--mail-type=",
    "--mem-bind=", "--cpu-freq=", "--gres=", "--profile=", "--gpu-freq=", "--delay-boot=",
    "--time=", "--time-min=", "--partition=", "--nodefile=", "--distribution=", "--distribution=,",
    "--node=2", "--nodes two", "-N two", "-c0", "-n 1k", "-dafterall:1", "-mblok",
    "--gres=gpu:2 --gpus=2 --nodes=2", "--gres=gpu:2 --gpus=3 --nodes=2",
    "--gres=gpu:4 --gpus=2 --nodes=1", "--gres=gpu:2 --gpus=8 --nodes=2",
    "--gpus-per-node=2 --gpus=2 --nodes=2", "--gpus-per-node=2 --gpus=3",
    "--gres=gpu:2 --gpus=2 --nodes=2-4", "--gres=gpu:a100:2 --gpus=4 --nodes=2",
    "--gpus-per-task=1 --ntasks=4 --gpus=8", "--gpus-per-task=2 --ntasks=4 --gpus=4",
)  # fmt: skip


def lines(kind: str) -> list[str]:
    return [f"--{name}={value}" for name, both in VALUES.items() for value in both.get(kind, ())]


def script(line: str) -> str:
    return f"#!/bin/bash\n#SBATCH {line}\ntrue\n"


def lint_refuses(line: str) -> bool:
    return any(found.severity == "error" for found in lint_script(script(line)))


def sbatch_refuses(line: str, folder: Path, number: int) -> bool:
    path = folder / f"{number}.sh"
    path.write_text(script(line))
    done = subprocess.run(["sbatch", "--test-only", path], capture_output=True, timeout=120)
    return done.returncode != 0


@pytest.mark.slurm
def test_sbatch_agrees(lab: Any, tmp_path: Path) -> None:
    tried = [*lines("accepted"), *ACCEPTED, *lines("refused"), *REFUSED, *LATER]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(sbatch_refuses, tried, [tmp_path] * len(tried), range(len(tried)))
        refused = {line for line, answer in zip(tried, answers, strict=True) if answer}
    assert refused == {*lines("refused"), *REFUSED, *LATER}


@pytest.mark.parametrize("line", [*lines("accepted"), *ACCEPTED, *LATER])
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
