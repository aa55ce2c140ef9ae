"""`status --watch` on a terminal of 60 columns: the state of runs, and below it their progress."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import msgspec
import pytest

from hpc_train.cli.follow_runs import live_table
from hpc_train.runs.json_files import to_json
from hpc_train.runs.run import Failure, JobState, Run, RunFolder
from tests.cli.conftest import Hpctrain
from tests.submissions.runs_of import written

PROGRESS = (
    "step 120, 0.25 s a step, 320 samples/s, loss 1.3, 2 min to step 600, 41 min to the time "
    "limit, 3.2 GPU-h"
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(name: str, state: JobState = JobState.RUNNING, problem: str = "") -> Run:
    return Run(
        folder=RunFolder(path=Path(name)),
        manifest=None,
        submission=None,
        status=None,
        state=state,
        problem=problem,
    )


def shown(monkeypatch: pytest.MonkeyPatch, runs: list[Run], measured: dict[str, str]) -> list[str]:
    for name, value in {"COLUMNS": "60", "LINES": "40", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    with live_table(stream) as show:
        show(runs, measured)
        drawn = stream.getvalue()  # its end draws it again
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    lines = [line.rstrip() for line in text.replace("\r", "").splitlines()]
    assert max(map(len, lines)) <= 60
    return lines


def test_progress_is_below_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, [run("a")], {"a": PROGRESS})
    assert lines[0] == "1 RUNNING"
    assert lines[1].split() == ["run", "state", "job", "nodes", "time", "problem"]
    assert lines[2].split() == ["a", "RUNNING", "--"]
    assert lines[3] == ""
    assert " ".join(lines[4:]).strip() == f"progress: {PROGRESS}"


def failed(home: Path, run_id: str, host: str) -> None:
    run = written(home, run_id, "", exit_code=7)
    assert run.status is not None
    failure = Failure(rank=1, host=host, exit_code=7, time=time.time())
    run.folder.status.write_bytes(to_json(msgspec.structs.replace(run.status, failure=failure)))


def test_nodes(hpctrain: Hpctrain, tmp_path: Path) -> None:
    results = tmp_path / "results"
    words = ("status", "--nodes", "--results", str(results))
    done = hpctrain(*words)
    assert (done.returncode, done.stdout) == (0, "")
    said = "no run failed on a node in the last 7 days, or the time that its site sets\n"
    assert done.stderr == said
    for run_id, host in (("a", "n1"), ("b", "n2"), ("c", "n2")):
        failed(results / "j", run_id, host)
    rows = [line.split() for line in hpctrain(*words).stdout.splitlines()]
    assert [(row[0], row[1] == "bad") for row in rows[1:]] == [
        ("n2", True),
        ("n2", True),
        ("n1", False),
    ]
    assert {" ".join(row[-7:]) for row in rows[1:]} == {"rank 1 failed first, exit code 7"}
    found = json.loads(hpctrain(*words, "--json").stdout)
    assert [(one["node"], one["bad"], len(one["faults"])) for one in found["nodes"]] == [
        ("n2", True, 2),
        ("n1", False, 1),
    ]
