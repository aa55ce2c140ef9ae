"""A training under mpirun on two nodes: it saves when its script is asked to, and goes on.

mpirun hands USR1 on to its daemon on the other node. TERM ends the daemon, and with it the rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.conftest import Slurm
from tests.end_to_end import gated
from tests.end_to_end.gated import Training
from tests.end_to_end.injected_faults import BY_SLURM, SAVED, requeued
from tests.end_to_end.user import User

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.slow,
    pytest.mark.mpi,
    pytest.mark.usefixtures("torch"),
]


@pytest.fixture
def user(user_of_a_lab: Callable[..., AbstractContextManager[User]]) -> Iterator[User]:
    with user_of_a_lab("--nodes", "2", "--accounting") as found:
        yield found


def warned(training: Training) -> None:
    """Send what Slurm sends before the time limit, to the script alone."""
    training.slurm("scancel", "--batch", "--signal=USR1", training.number)


@pytest.mark.parametrize("stop_by", ["signal", "file"])
def test_it_saves_and_is_queued_again(
    user: User, slurm: Slurm, tmp_path: Path, stop_by: str
) -> None:
    lifecycle = {"stop_by": stop_by}
    training = gated.submit(
        user, slurm, "mpi", 3 * gated.GATE, launcher="mpirun", lifecycle=lifecycle
    )
    for number, (inject, end) in enumerate(((warned, SAVED), (requeued, BY_SLURM))):
        training.reaches_gate()
        inject(training)
        row = training.next_end(number)
        assert end in row["reason"], row
        if end == SAVED:
            assert (row["step"], row["steps_lost"], row["exit_code"]) == (training.gate, 0, 75)
        training.starts_again(number + 1)
        training.reaches_gate()
        training.open_gate()
    training.reaches_gate()
    training.open_gate()
    training.becomes("COMPLETED")
    logs = [(training.folder / f"logs/rank-{rank}.out").read_text() for rank in (0, 1)]
    expected = gated.undisturbed(tmp_path, 3 * gated.GATE)
    assert [gated.result(log) for log in logs] == expected
