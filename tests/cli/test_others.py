"""Results of others on the command line: what is printed, and with which exit code."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
TABLE = "run,nodes,gpus_per_node,samples_per_second,state\na,1,4,100,ok\nb,2,4,180,ok\n"


def test_a_table_becomes_a_report(hpctrain: Hpctrain) -> None:
    Path("table.csv").write_text(TABLE)
    done = hpctrain("report", "table.csv", "-f", "json")
    assert done.returncode == 0, done.stderr
    _, two = json.loads(done.stdout)["rows"]
    assert two["efficiency"]["value"] == pytest.approx(0.9)


def test_a_run_that_waits_makes_the_report_partial(hpctrain: Hpctrain) -> None:
    Path("table.csv").write_text(TABLE + "c,4,4,,PENDING\n")
    done = hpctrain("report", "table.csv")
    assert done.returncode == 3
    assert "(partial: 1 of 3 runs not finished)" in done.stdout


def test_what_a_person_leaves_out_is_shown_and_is_no_failure(hpctrain: Hpctrain) -> None:
    Path("table.csv").write_text(TABLE)
    done = hpctrain("report", "table.csv", "--exclude", "b=the node was hot")
    assert done.returncode == 0, done.stderr
    assert "the node was hot" in done.stdout
    assert "EXCLUDED" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("table.csv", "--exclude", "c=x"), "no run is called 'c'"),
        (("table.csv", "--exclude", "b"), "a run and a reason are needed"),
        (("table.csv", "--points", "points.yaml"), "a table has the sizes of its runs in columns"),
        (("table.csv", "--parser", "nanogtp"), "'nanogtp'; did you mean 'nanogpt'?"),
        (("bad.csv",), "bad.csv:2: samples_per_second: '1,5' has a decimal comma"),
        (("points.yaml",), "points.yaml:1: no log is called 'tabel.log'; did you mean"),
        (("tabel.log", "table.csv"), "tabel.log: no such file"),
    ],
)
def test_mistakes_have_one_answer(hpctrain: Hpctrain, words: tuple[str, ...], said: str) -> None:
    Path("table.csv").write_text(TABLE)
    Path("bad.csv").write_text('nodes,samples_per_second\n1,"1,5"\n')
    Path("points.yaml").write_text("tabel.log: {nodes: 1}\n")
    Path("table.log").write_text("x\n")
    done = hpctrain("report", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
