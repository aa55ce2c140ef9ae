"""examples/restart, as docs/restart.md explains it: stopped in the middle, it loses nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.workload.launching import finish, start

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "restart" / "train.py"
AGENT = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
LINES = 4 * 32


def lines(folder: Path, **extra: object) -> tuple[int, list[str]]:
    """Return the exit code of the agent and the different lines of both ranks, in order."""
    where = {"HPCTRAIN_CHECKPOINTS": folder, "PYTHONPATH": EXAMPLE.parents[2], **extra}
    code, out, _ = finish(start((*AGENT, EXAMPLE), **where))
    # The ranks share a pipe, so that a line may follow another without a line break between.
    return code, re.findall(r"epoch \d+ step \d+ loss \d+\.\d{6}", out)


def test_the_example_continues_where_it_was_stopped(tmp_path: Path) -> None:
    code, whole = lines(tmp_path / "whole")
    assert (code, len(whole)) == (0, 2 * LINES)
    stop = tmp_path / "stop"
    stop.touch()
    code, first = lines(tmp_path / "twice", HPCTRAIN_STOP_FILE=stop)
    assert (code, len(first)) == (1, 2)
    stop.unlink()
    code, rest = lines(tmp_path / "twice", HPCTRAIN_STOP_FILE=stop)
    assert code == 0
    assert sorted(first + rest) == sorted(whole)
