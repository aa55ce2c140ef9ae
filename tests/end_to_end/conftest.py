"""A user on a lab that has no jobs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import Slurm, refuse
from tests.end_to_end.queue import wait_until_idle
from tests.end_to_end.user import User, user_of
from tests.pipeline.waiting import wait_for


@pytest.fixture
def user(lab: Lab, slurm: Slurm, tmp_path: Path) -> Iterator[User]:
    """Return somebody with an empty folder and an idle lab; end whatever is left in the queue."""
    wait_until_idle(slurm)
    yield user_of(lab, tmp_path)
    slurm("scancel", "--user=root")
    wait_for(lambda: slurm("squeue", "--noheader") == "")


@pytest.fixture
def torch() -> None:
    """Need torch, without importing it here."""
    if find_spec("torch") is None:
        refuse("torch is not installed; install hpctrain[torch]")
