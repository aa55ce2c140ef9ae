"""`hpctrain site check --live` and `detect`, with a Slurm that says what a real one said."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain
from tests.machine.machines import fixture

HEAD = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
"""
GPU = "partitions: [{name: gpu, default: true, nodes: 3, max_nodes: 3, gpus_per_node: 4}]\n"


@pytest.fixture
def slurm(tmp_path: Path) -> Path:
    """Return a PATH with a Slurm without accounting."""
    folder = tmp_path / "bin"
    folder.mkdir()
    config = fixture("lab.config").replace("accounting_storage/slurmdbd", "accounting_storage/none")
    answers = {"config": config, "partition": fixture("lab.partitions")}
    answers |= {"node": fixture("lab.nodes"), "mpi": fixture("lab.mpi")}
    for name, text in answers.items():
        (folder / f"{name}.txt").write_text(text)
    program(folder / "scontrol", f'printf "%s" "$(<{folder}/$2.txt)"')
    program(folder / "srun", f'printf "%s" "$(<{folder}/mpi.txt)"')
    return folder


def program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/bash\n{line}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("partitions", "code", "said"),
    [
        (GPU, 0, "mine and the cluster lab agree: 5 values"),
        (GPU, 3, "agree: 4 values; the rest could not be read"),
        (GPU.replace(": 4", ": 8"), 3, "agree: 4 values; the rest"),
        (GPU.replace(": 4", ": 8"), 1, "partitions.0.gpus_per_node"),
        (
            "partitions: [{name: a, select: {constraint: fat, qos: b}}]\n",
            3,
            "nothing to compare: mine states nothing that the cluster lab shows",
        ),
    ],
)
def test_live_says_how_much_it_compared(
    hpctrain: Hpctrain, slurm: Path, partitions: str, code: int, said: str
) -> None:
    Path("mine.yaml").write_text(HEAD + partitions)
    silent = "the rest" in said
    if silent:
        (slurm / "node.txt").write_text("")
    done = hpctrain("site", "check", "./mine.yaml", "--live", PATH=str(slurm))
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr
    plain = hpctrain("site", "check", "./mine.yaml", "--live", "--json", PATH=str(slurm))
    answer = json.loads(plain.stdout)
    assert plain.returncode == code
    assert bool(answer["unread"]) == silent
    assert (answer["compared"] > 0) == ("nothing" not in said)
    assert bool(answer["differences"]) == (code == 1)


@pytest.mark.parametrize(
    "text", ["name: a\ncommand: [python, train.py]\n", "name: [a\n", HEAD + "nonsense: 1\n"]
)
def test_a_file_that_is_no_profile_is_one_error(hpctrain: Hpctrain, text: str) -> None:
    Path("mine.yaml").write_text(HEAD + GPU)
    Path("wrong.yaml").write_text(text)
    done = hpctrain("site", "check", "./wrong.yaml", "./mine.yaml")
    lines = done.stdout.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(errors) == 1 and "wrong.yaml" in errors[0]
    assert lines[-1].startswith("./mine.yaml: ") and lines[-1].endswith("; 0 errors")
    assert not any(line.startswith("./wrong.yaml: ") for line in lines)
