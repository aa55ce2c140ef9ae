"""`hpctrain diagnose` as users run it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

FAILED = (
    "[rank1]: Traceback (most recent call last):\n"
    '[rank1]:   File "/work/train.py", line 41, in <module>\n'
    "[rank1]:     main()\n"
    "[rank1]: ValueError: heads must divide the width\x1b]0;evil\x07\x9b31m\n"
    "srun: error: n1: task 1: Exited with exit code 1\n"
    "[W socket.cpp:426] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - "
    "Address family not supported by protocol).\n"
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Return the name of a log in the folder of the command."""
    (tmp_path / "job.log").write_text(FAILED)
    return "job.log"


def test_first_three_answers_are_what_where_and_what_to_do(hpctrain: Hpctrain, log: str) -> None:
    done = hpctrain("diagnose", log)
    assert (done.returncode, done.stderr) == (0, "")
    first, where, do, *rest = done.stdout.splitlines()
    assert first.startswith("FAILED  ")
    assert "heads must divide the width" in first
    assert where == "where   job.log:4, rank 1, raised at /work/train.py:41"
    assert do.startswith("do      ")
    assert "Followed from it" in rest
    assert rest[-1] == "1 harmless finding not shown; --benign shows them"
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stdout.replace("\n", "").isprintable()


def test_json_has_the_contract(hpctrain: Hpctrain, log: str) -> None:
    answer = json.loads(hpctrain("diagnose", log, "--json").stdout)
    assert answer["schema"] == 1
    assert answer["outcome"] == "failed"
    assert answer["transport"] is None
    found = {one["id"]: one for one in answer["findings"]}
    assert answer["findings"][0]["id"] == "python_exception"
    assert found["python_exception"]["role"] == "root"
    assert found["exit_error"]["role"] == "consequence"
    assert found["c10d_ipv6"]["severity"] == "benign"
    (evidence,) = found["python_exception"]["evidence"]
    assert (evidence["source"], evidence["line"], evidence["rank"]) == ("job.log", 4, 1)


@pytest.mark.process
def test_runs_are_diagnosed_by_their_files(hpctrain: Hpctrain, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, sys\n"
        "print('step', 1, flush=True)\n"
        "if os.environ['RANK'] == '1':\n"
        "    raise ValueError('heads must divide the width')\n"
        "import time; time.sleep(600)\n"
    )
    words = ("train.py", "--tasks-per-node", "2", "--launcher", "torchrun", "--cpus-per-task", "1")
    assert hpctrain("submit", *words, "--wait").returncode == 1
    done = hpctrain("diagnose", "train")
    assert done.returncode == 0, done.stderr
    first, where, *_ = done.stdout.splitlines()
    assert "heads must divide the width" in first
    assert "logs/rank-1.out:" in where
    assert "rank 1" in where
    report = hpctrain("report", "train")
    assert "heads must divide the width" in " ".join(report.stdout.split())
