"""Results in a folder that each node has for itself, as /dev/shm: the job fails and says so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.studies import job
from tests.end_to_end.user import User

pytestmark = [pytest.mark.slurm]
ADVICE = "the results must be on a file system that all nodes share (--results DIR)"


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """Return a name in memory, which on a node of the lab is another folder."""
    folder = Path("/dev/shm", f"hpctrain-{tmp_path.name}")  # noqa: S108 - its point is to be there
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_no_node_has_it(user: User, mine: Path) -> None:
    user.write("job.yaml", job("here", "echo hello", nodes=2, time="1m"))
    done = user.submit("job.yaml", "--results", mine, "--wait")
    assert done.returncode == 1
    assert ADVICE in done.stderr
    row = user.run("here", "--results", mine)
    assert row["state"] == "FAILED"
    assert row["problem"].endswith(ADVICE)
    assert ADVICE in user.hpctrain("status", "here", "--results", mine).stdout
