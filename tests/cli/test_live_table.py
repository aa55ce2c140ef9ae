"""`status --watch` on a terminal of 60 columns: the state of runs, and below it their progress."""

import io
import re
from pathlib import Path

import pytest

from hpc_train.cli.follow_runs import live_table
from hpc_train.runs.run import JobState, Run, RunFolder

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
