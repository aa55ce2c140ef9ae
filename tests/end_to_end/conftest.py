"""A user on a lab that has no jobs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import Hpctrain, Slurm, pointed_at, refuse
from tests.end_to_end.host_user import mine, ssh_lab, two_hosts
from tests.end_to_end.queue import wait_until_idle
from tests.end_to_end.user import User, user_of
from tests.submissions.waiting import wait_for

__all__ = ["mine", "ssh_lab", "two_hosts"]


@pytest.fixture
def user(lab: Lab, slurm: Slurm, tmp_path: Path) -> Iterator[User]:
    """Return somebody with an empty folder and an idle lab; end whatever is left in the queue."""
    yield from alone(user_of(lab, tmp_path), slurm)


@pytest.fixture
def accounted(accounting_lab: Lab, slurm: Slurm, tmp_path: Path) -> Iterator[User]:
    """Return such a user of a lab of two nodes with accounting."""
    yield from alone(user_of(accounting_lab, tmp_path), slurm)


def alone(user: User, slurm: Slurm) -> Iterator[User]:
    """Let a user have the lab alone."""
    # Of a test with the lab alone that failed: each of the next ones would wait for its jobs.
    slurm("scancel", "--user=root")
    wait_until_idle(slurm)
    yield user
    slurm("scancel", "--user=root")
    wait_for(lambda: slurm("squeue", "--noheader") == "")


@pytest.fixture
def user_of_a_lab(
    lab_with: Callable[..., Lab],
    hpctrain: Hpctrain,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Callable[..., AbstractContextManager[User]]:
    """Return a function from options of `lab up` to somebody on a lab that a test may break."""

    @contextmanager
    def started(*options: str) -> Iterator[User]:
        assert hpctrain("down").returncode == 0
        try:
            yield user_of(pointed_at(lab_with(*options), monkeypatch), tmp_path)
        finally:
            assert hpctrain("down").returncode == 0

    return started


@pytest.fixture
def torch() -> None:
    """Need torch, without importing it here."""
    if find_spec("torch") is None:
        refuse("torch is not installed; install hpctrain[torch]")
