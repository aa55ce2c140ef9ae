"""Scaling studies, from the file to the table, in jobs of their own or in one."""

import csv
import json
import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.end_to_end.studies import study
from tests.end_to_end.user import User
from tests.submissions.waiting import wait_for

pytestmark = [pytest.mark.slurm]


@pytest.fixture
def odd(user: User) -> User:
    """Move to a folder whose name a shell, or sbatch in the name of a log, would read otherwise."""
    folder = user.folder / "our 50 %j %a's $HOME"
    folder.mkdir()
    return replace(user, folder=folder)


def table(user: User, name: str) -> list[tuple[int, int, int, float]]:
    """Return nodes, runs with a result, runs asked for, and speedup of each row of the report."""
    done = user.hpctrain("report", name, "-f", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    return [
        (row["nodes"], row["n_ok"], row["n_submitted"], round(row["speedup"]["value"], 6))
        for row in rows
    ]


def jobs(user: User, name: str) -> dict[int, set[str]]:
    """Return number of nodes -> the jobs of its runs."""
    found: dict[int, set[str]] = defaultdict(set)
    for row in user.runs(name).values():
        found[row["axes"]["nodes"]].add(row["job"])
    return found


PERFECT = [(1, 2, 2, 1.0), (2, 2, 2, 2.0), (4, 2, 2, 4.0)]


def test_independent_runs(odd: User) -> None:
    done = odd.submit(odd.write("study.yaml", study("apart")), "--wait")
    assert done.returncode == 0, done.stderr
    assert table(odd, "apart") == PERFECT
    arrays = set()
    for elements in jobs(odd, "apart").values():
        (array,) = {job.partition("_")[0] for job in elements}
        assert elements == {f"{array}_1", f"{array}_2"}
        arrays.add(array)
    assert len(arrays) == 3
    text = odd.hpctrain("report", "apart").stdout
    assert "6 of 6 runs ok" in text


def test_nested_runs(odd: User) -> None:
    done = odd.submit(odd.write("study.yaml", study("inside", placement="nested")), "--wait")
    assert done.returncode == 0, done.stderr
    assert table(odd, "inside") == PERFECT
    (job,) = set().union(*jobs(odd, "inside").values())
    assert job.isdecimal()
    rows = odd.runs("inside")
    for run, row in rows.items():
        hosts = re.findall(r"^on (\S+)$", "".join(odd.logs(run).values()), re.MULTILINE)
        assert sorted(hosts) == ["lab1", "lab2", "lab3", "lab4"][: row["axes"]["nodes"]]
        status = json.loads((odd.folder / "results/inside" / run / "status.json").read_text())
        assert status["nodes"].split(",") == sorted(hosts)
    turns = sorted((row["started"], row["ended"]) for row in rows.values())
    assert all(end <= start for (_, end), (start, _) in pairwise(turns)), "two runs at once"
    in_order = sorted(rows, key=lambda run: rows[run]["started"])
    assert [run[-2:] for run in in_order] == ["r1"] * 3 + ["r2"] * 3
    points = csv.DictReader(odd.hpctrain("report", "inside", "-f", "csv").stdout.splitlines())
    assert [row["is_paired"] for row in points] == ["False", "True", "True"]


def test_a_cancelled_allocation(user: User) -> None:
    """The first run ends, the second hangs until there is a file, two have not begun."""
    before = (
        "if [ -e first ]; then echo hangs; until [ -e go ]; do sleep 0.1; done; fi\ntouch first\n"
    )
    axes = {"env.X": [1, 2, 3, 4]}
    wanted = study("halted", before, placement="nested", axes=axes, repetitions=1)
    wanted["job"]["resources"] |= {"nodes": 1, "time": "5m"}
    assert user.submit(user.write("study.yaml", wanted)).returncode == 0
    home = user.folder / "results" / "halted"
    wait_for(lambda: any("hangs" in log.read_text() for log in home.glob("*/logs/rank-0.out")))
    rows = user.runs("halted").values()
    states = sorted(row["state"] for row in rows)
    assert states == ["COMPLETED", "PENDING", "PENDING", "RUNNING"]
    assert {row["reason"] for row in rows if row["state"] == "PENDING"} == {
        f"it waits for earlier runs in the allocation, job {next(iter(rows))['job']}"
    }

    cancelled = user.hpctrain("cancel", "halted").stdout.splitlines()
    assert len(cancelled) == 3
    rows = user.runs("halted").values()
    assert sorted(row["state"] for row in rows) == ["CANCELLED"] * 3 + ["COMPLETED"]
    began = [row for row in rows if row["started"] is not None]
    assert sorted(row["state"] for row in began) == ["CANCELLED", "COMPLETED"]

    (user.folder / "go").touch()
    again = user.submit("study.yaml", "--wait")
    assert again.returncode == 0, again.stderr
    assert len(again.stdout.split()) == 3
    last = {row["axes"]["env.X"]: row for row in sorted(user.runs("halted").values(), key=_attempt)}
    assert [row["state"] for row in last.values()] == ["COMPLETED"] * 4
    assert sorted(row["attempt"] for row in last.values()) == [1, 2, 2, 2]


def _attempt(row: dict[str, int]) -> int:
    return row["attempt"]
