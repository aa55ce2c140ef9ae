"""`hpctrain logs -f` prints new lines until the run has finished."""

from __future__ import annotations

import time
from itertools import chain, repeat
from pathlib import Path

import pytest
from click.testing import CliRunner

from hpc_train.cli.group import cli
from tests.submissions.runs_of import written


def test_the_log_of_a_run_of_unknown_state_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = written(tmp_path / "j", "j-n1-r1", "first\n").folder
    log, ended = run.logs / "rank-0.out", run.status.read_bytes()
    run.submission.unlink()
    run.status.unlink()
    lines = chain(["second\n", "third\n"], repeat(""))

    def go_on(_seconds: float) -> None:
        line = next(lines)
        if not line:
            run.status.write_bytes(ended)
        with log.open("a") as stream:
            stream.write(line)

    monkeypatch.setattr(time, "sleep", go_on)
    done = CliRunner().invoke(cli, ["logs", str(run.path), "--follow"])
    assert (done.exit_code, done.output) == (0, "==> rank-0.out <==\nfirst\nsecond\nthird\n")
