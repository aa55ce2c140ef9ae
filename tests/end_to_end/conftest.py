"""A user on a lab that has no jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from hpc_train.lab import state_file
from hpc_train.lab.state_file import Lab
from tests.conftest import Hpctrain, Slurm, refuse
from tests.end_to_end.queue import wait_until_idle
from tests.end_to_end.user import User, user_of
from tests.pipeline.waiting import wait_for


@pytest.fixture
def user(lab: Lab, slurm: Slurm, tmp_path: Path) -> Iterator[User]:
    """Return somebody with an empty folder and an idle lab; end whatever is left in the queue."""
    # Of a test with the lab alone that failed: each of the next ones would wait for its jobs.
    slurm("scancel", "--user=root")
    wait_until_idle(slurm)
    yield user_of(lab, tmp_path)
    slurm("scancel", "--user=root")
    wait_for(lambda: slurm("squeue", "--noheader") == "")


@pytest.fixture
def user_of_a_lab(
    no_lab: None, hpctrain: Hpctrain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., AbstractContextManager[User]]:
    """Return a function from options of `lab up` to somebody on a lab that a test may break."""

    @contextmanager
    def started(*options: str) -> Iterator[User]:
        done = hpctrain("up", *options)
        assert done.returncode == 0, done.stderr
        lab = state_file.read()
        assert lab is not None
        monkeypatch.setenv("SLURM_CONF", f"{lab.settings.folder}/slurm.conf")
        yield user_of(lab, tmp_path)
        assert hpctrain("down").returncode == 0

    return started


@pytest.fixture
def torch() -> None:
    """Need torch, without importing it here."""
    if find_spec("torch") is None:
        refuse("torch is not installed; install hpctrain[torch]")
