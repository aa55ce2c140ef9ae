"""`hpctrain report` on logs of anybody that crashed, and on one job under two names."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Hpctrain

CRASH = """\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    loss.backward()
RuntimeError: CUDA error: an illegal memory access was encountered
"""


def log(name: str, seconds: float, end: str = "", ranks: int = 1, steps: int = 30) -> Path:
    lines = [f'@hpct {{"event":"start","world_size":{ranks},"global_batch_size":64}}\n']
    lines += [
        f'@hpct {{"v":1,"event":"step","rank":0,"step":{step},"step_time":'
        f'{seconds * (1 + step / 1000):.6f},"samples":{64 // ranks},"loss":1.0}}\n'
        for step in range(1, steps + 1)
    ]
    Path(name).write_text("".join(lines) + end)
    return Path(name)


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    assert done.returncode in (0, 3), done.stderr
    return {r["run_id"]: (r["state"], r["problem"]) for r in json.loads(done.stdout)["runs"]}


def test_a_log_that_crashed_is_a_failed_run_and_part_of_no_number(hpctrain: Hpctrain) -> None:
    log("a.log", 0.5)
    log("b.log", 0.1, CRASH)
    done = hpctrain("report", "a.log", "b.log", "-f", "json")
    assert done.returncode == 3
    found = rows(done)
    assert found["a.log"] == ("COMPLETED", "")
    state, problem = found["b.log"]
    assert state == "FAILED"
    assert "kernel" in problem
    assert "b.log:" in problem
    (point,) = json.loads(done.stdout)["rows"]
    assert (point["n_ok"], point["n_submitted"], point["not_ok"]) == (1, 2, "1 FAILED")


def test_a_crashed_log_counts_where_a_person_says_so_and_is_named(hpctrain: Hpctrain) -> None:
    log("a.log", 0.5)
    log("b.log", 0.1, CRASH)
    done = hpctrain("report", "a.log", "b.log", "-f", "json", "--allow-failed")
    assert done.returncode == 0, done.stderr
    assert rows(done)["b.log"][0] == "COMPLETED"
    (point,) = json.loads(done.stdout)["rows"]
    assert point["n_ok"] == 2
    assert any("b.log" in n and "shows a failure" in n for n in json.loads(done.stdout)["notes"])


@pytest.mark.parametrize("how", ["copy", "link", "packed"])
def test_one_log_under_two_names_is_no_repetition(hpctrain: Hpctrain, how: str) -> None:
    first = log("a.log", 0.5)
    if how == "link":
        Path("b.log").symlink_to("a.log")
    elif how == "copy":
        Path("b.log").write_bytes(first.read_bytes())
    else:
        Path("b.log.gz").write_bytes(gzip.compress(first.read_bytes()))
    name = "b.log.gz" if how == "packed" else "b.log"
    done = hpctrain("report", "a.log", name)
    assert done.returncode == 2
    assert "a.log" in done.stderr
    assert f"--exclude '{name}=" in done.stderr
    done = hpctrain("report", "a.log", name, "--exclude", f"{name}=a copy of a.log", "-f", "json")
    assert rows(done)[name] == ("EXCLUDED", "a copy of a.log")
