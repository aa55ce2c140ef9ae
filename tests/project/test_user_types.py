"""The types of the Python interface, as a type checker sees them in the code of a user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RIGHT = '''\
"""A script of a user."""

from pathlib import Path
from typing import assert_type

import pandas as pd

import hpc_train


def main(folder: Path) -> None:
    run = hpc_train.submit(folder / "job.yaml", nodes=2, time="1h", env={"X": 1}, site="local")
    assert isinstance(run, hpc_train.SubmittedRun)
    assert_type(run.state, str)
    assert_type(run.wait(timeout=60), str)
    text = run.logs(rank=0, lines=20)
    assert_type(text, str)
    for one in hpc_train.submit("train.py", ["--epochs", 3], settings={"env.X": "1"}).runs:
        assert_type(one, hpc_train.SubmittedRun)
    study = hpc_train.study("digits", results=folder)
    assert_type(study.wait(), dict[str, int])
    report = hpc_train.report([study, "other.csv"], scaling="weak")
    assert_type(report.table, pd.DataFrame)
    assert_type(report.figures[0].png, bytes)
    assert_type(report.save("report.html"), tuple[Path, ...])
    compared = hpc_train.compare(study, "report.json")
    assert_type(compared.checks, tuple[str, ...])
    diagnosis = hpc_train.diagnose([run, folder / "slurm-1.out"])
    if diagnosis.root is not None:
        assert_type(diagnosis.root.title, str)
    assert_type(hpc_train.collect(run), pd.DataFrame)
    try:
        hpc_train.run("none")
    except hpc_train.HpcTrainError as error:
        assert_type(error.hint, str)
'''
WRONG = {
    'hpc_train.submit("job.yaml", nodez=2)': "nodez",
    'hpc_train.submit("job.yaml", nodes="2")': 'incompatible type "str"',
    'hpc_train.submit("job.yaml").state': 'has no attribute "state"',
    'hpc_train.report("a", scaling="week")': "scaling",
    "hpc_train.run(3)": 'incompatible type "int"',
    "hpc_train.reprot": 'has no attribute "reprot"',
}


def errors(folder: Path, **scripts: str) -> dict[str, list[str]]:
    """Return what `mypy --strict` says of scripts, by name."""
    files = [f"{name}.py" for name in scripts]
    for file, text in zip(files, scripts.values(), strict=True):
        (folder / file).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11",
            "--config-file=", "--cache-dir", str(folder / "cache"), *files,
        ],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )  # fmt: skip
    assert "checked 2 source files" in done.stdout, done.stdout + done.stderr
    said = done.stdout.splitlines()[:-1]
    return {name: [line for line in said if line.startswith(f"{name}.py:")] for name in scripts}


@pytest.mark.long
def test_a_script_is_checked_strictly(tmp_path: Path) -> None:
    lines = "\n".join(WRONG)
    found = errors(tmp_path, right=RIGHT, wrong=f'"""Errors."""\n\nimport hpc_train\n\n{lines}\n')
    assert found["right"] == []
    for number, expected in enumerate(WRONG.values(), 5):
        (error,) = [line for line in found["wrong"] if line.startswith(f"wrong.py:{number}: error")]
        assert expected in error
